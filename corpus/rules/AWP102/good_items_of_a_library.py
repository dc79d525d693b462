"""The same check in a library: who calls it, and how often, is not known to matter."""

import torch


class Normaliser:
    def normalised(self, image: torch.Tensor) -> torch.Tensor:
        spread = image.std()
        if spread < 1e-5:  # expect[low]: AWP102
            return image - image.mean()
        return (image - image.mean()) / spread

    def preprocess_images(self, images: list[torch.Tensor]) -> list[torch.Tensor]:
        return [self.normalised(image) for image in images]
