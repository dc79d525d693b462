"""A script loads once a run, configuration is no model, tests load what they like."""

from transformers import AutoConfig, AutoModel, AutoTokenizer


def main() -> None:
    tokenizer = AutoTokenizer.from_pretrained("lm")
    model = AutoModel.from_pretrained("lm").to("cuda")
    print(model(**tokenizer("a", return_tensors="pt").to("cuda")))


def test_handler():
    assert AutoModel.from_pretrained("tiny") is not None


def describe(name: str) -> dict:
    return AutoConfig.from_pretrained(name).to_dict()


if __name__ == "__main__":
    main()
