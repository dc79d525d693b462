"""Half-precision convolution networks in the default layout."""

import segmentation_models_pytorch as smp
import timm
import torch
import torchvision.models as models

resnet = models.resnet50(weights="DEFAULT").eval().half().cuda()  # expect: AWP311
effnet = timm.create_model("efficientnet_b0", pretrained=True).eval().to("cuda", torch.float16)  # expect: AWP311
unet = smp.Unet("resnet34", classes=2).eval().cuda()  # expect: AWP311


@torch.inference_mode()
def predict(images: torch.Tensor) -> torch.Tensor:
    images = images.cuda().half()
    with torch.autocast("cuda", dtype=torch.float16):
        masks = unet(images)
    return resnet(images) + effnet(images) + masks.mean()
