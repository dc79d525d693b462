"""Helpers that take whole batches, that keep something for the next item, or that run no model for most items."""

import argparse

import torch
from transformers import CLIPModel, CLIPProcessor


class Tagger:
    def __init__(self, name: str):
        self.model = CLIPModel.from_pretrained(name).cuda().eval()
        self.processor = CLIPProcessor.from_pretrained(name)
        self.last = None
        self.seen = {}

    @torch.inference_mode()
    def features(self, images):
        inputs = self.processor(images=images, return_tensors="pt").to("cuda")
        return self.model.get_image_features(**inputs)

    @torch.inference_mode()
    def change(self, image):
        found = self.features([image])
        before, self.last = self.last, found
        inputs = self.processor(images=image, return_tensors="pt").to("cuda")
        return self.model.get_image_features(**inputs) - before

    def remembered(self, image):
        if image not in self.seen:
            self.seen[image] = self.model.get_image_features(**self.processor(images=image, return_tensors="pt"))
        return self.seen[image]

    def tag(self, images: list):
        return torch.cat([self.features(batch) for batch in self.batches(images)])

    def changes(self, images: list):
        return [self.change(image) for image in images]

    def looked_up(self, images: list):
        return [self.remembered(image) for image in images]

    def cut(self, images: list, sizes: list):
        return [self.features(image[None, :, :height]) for image, height in zip(images, sizes)]

    def of_one_size(self, images):
        if isinstance(images, torch.Tensor):
            return self.features(images)
        return [self.features(image) for image in images]  # expect[low]: AWP201

    def batches(self, images: list):
        for start in range(0, len(images), 32):
            yield images[start : start + 32]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("images", nargs="+")
    args = parser.parse_args()
    tagger = Tagger("clip")
    print(
        tagger.tag(args.images),
        tagger.changes(args.images),
        tagger.looked_up(args.images),
        tagger.cut(args.images, [8]),
        tagger.of_one_size(args.images),
    )


if __name__ == "__main__":
    main()
