"""Faults and look-alikes of the rules 7xx: precision."""

from __future__ import annotations

from faults.table import faults

PRECISION = (
    faults(
        "AWP701",
        "module",
        """
        def predict_{u}(name: str, texts: list[str]):
            from transformers import AutoModel, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModel.from_pretrained(name).to("cuda").eval()
            inputs = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
            return model(**inputs).last_hidden_state[:, 0].mean(-1).tolist()
        """,
        """
        @torch.inference_mode()
        def predict_{u}(name: str, texts: list[str]):
            from transformers import AutoModel, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModel.from_pretrained(name).to("cuda").eval()
            inputs = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
            return model(**inputs).last_hidden_state[:, 0].mean(-1)
        """,
    ),
    faults(
        "AWP704",
        "module",
        """
        @torch.inference_mode()
        def generate_image_{u}(unet: nn.Module, latents: torch.Tensor, num_inference_steps: int):
            latents = latents.to("cuda")
            for t in range(num_inference_steps):
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    noise = unet(latents, t)
                latents = latents - 0.1 * noise
            return latents
        """,
        """
        @torch.inference_mode()
        def generate_image_{u}(unet: nn.Module, latents: torch.Tensor, num_inference_steps: int):
            latents = latents.to("cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                for t in range(num_inference_steps):
                    latents = latents - 0.1 * unet(latents, t)
            return latents
        """,
    ),
    faults(
        "AWP706",
        "layer",
        """
        wide_{u} = {x}.double().std()
        {x} = ({x} / wide_{u}).to({x}.dtype)
        ---
        wide_{u} = {x}.to(torch.float64)
        {x} = (wide_{u} * 0.5).float()
        """,
        """
        wide_{u} = {x}.float().std()
        {x} = ({x} / wide_{u}).to({x}.dtype)
        ---
        step_{u} = np.float64(0.5)
        {x} = {x} * float(step_{u})
        """,
    ),
)
