"""A script without a server."""

import torch
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("encoder")
model = AutoModel.from_pretrained("encoder").to("cuda").eval()


@torch.inference_mode()
def predict(text: str) -> list:
    return model(**tokenizer(text, return_tensors="pt").to("cuda")).last_hidden_state[0, 0].tolist()


if __name__ == "__main__":
    print(predict("hello"))
