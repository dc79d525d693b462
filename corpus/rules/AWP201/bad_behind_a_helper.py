"""Pictures that go through a model one by one, in a method of their own."""

import argparse

import torch
from transformers import CLIPModel, CLIPProcessor


class Tagger:
    def __init__(self, name: str):
        self.model = CLIPModel.from_pretrained(name).cuda().eval()
        self.processor = CLIPProcessor.from_pretrained(name)

    @torch.inference_mode()
    def features(self, image):
        inputs = self.processor(images=image, return_tensors="pt").to("cuda")
        return self.model.get_image_features(**inputs)

    def tag(self, images: list):
        found = []
        for image in images:  # expect: AWP201
            found.append(self.features(image))
        return torch.cat(found)

    def tag_all(self, images: list):
        return [self.features(image) for image in images]  # expect: AWP201


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("images", nargs="+")
    args = parser.parse_args()
    tagger = Tagger("clip")
    print(tagger.tag(args.images).shape, len(tagger.tag_all(args.images)))


if __name__ == "__main__":
    main()
