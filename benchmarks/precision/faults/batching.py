"""Faults and look-alikes of the rules 2xx: batches and loops."""

from __future__ import annotations

from faults.table import faults

BATCHING = (
    faults(
        "AWP201",
        "class",
        """
        @torch.inference_mode()
        def predict_{u}(self, prompts: list[torch.Tensor]):
            found = []
            for prompt in prompts:
                found.append(self.generate(prompt, max_new_tokens=16))
            return found
        ---
        @torch.no_grad()
        def embed_{u}(self, texts: list[torch.Tensor]):
            return [self.model(text[None]).last_hidden_state[:, 0] for text in texts]
        """,
        """
        @torch.inference_mode()
        def predict_{u}(self, prompts: torch.Tensor):
            found = []
            for start in range(0, prompts.shape[0], 32):
                found.append(self.generate(prompts[start : start + 32], max_new_tokens=16))
            return found
        ---
        @torch.no_grad()
        def embed_{u}(self, batches: list[torch.Tensor]):
            return [self.model(batch).last_hidden_state[:, 0] for batch in batches]
        """,
    ),
    faults(
        "AWP202",
        "module",
        """
        def predict_{u}(name: str, texts: list[str]):
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(name)
            ids = []
            for text in texts:
                ids.append(tokenizer(text, return_tensors="pt").input_ids)
            return ids
        ---
        def encode_{u}(name: str, prompts: list[str]):
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(name)
            return [tokenizer.encode(prompt) for prompt in prompts]
        """,
        """
        def predict_{u}(name: str, texts: list[str]):
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(name)
            return tokenizer(texts, padding=True, return_tensors="pt").input_ids
        ---
        def encode_{u}(texts: list[str]):
            return [text.encode("utf-8") for text in texts]
        """,
    ),
    faults(
        "AWP203",
        "layer",
        """
        rows_{u} = []
        for index_{u} in range({x}.shape[0]):
            rows_{u}.append(torch.sigmoid({x}[index_{u}]) * 2.0)
        {x} = torch.stack(rows_{u})
        ---
        out_{u} = torch.empty_like({x})
        for index_{u}, row_{u} in enumerate({x}):
            out_{u}[index_{u}] = row_{u}.softmax(-1) * 0.5
        {x} = out_{u}
        """,
        """
        {x} = torch.sigmoid({x}) * 2.0
        ---
        total_{u} = 0
        for length_{u} in {x}.shape:
            total_{u} += length_{u}
        {x} = {x} * float(total_{u} > 0)
        """,
    ),
    faults(
        "AWP204",
        "module",
        """
        class Experts_{u}(nn.Module):
            def __init__(self, dim: int, num_experts: int):
                super().__init__()
                self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_experts)])
                self.num_experts = num_experts

            def forward(self, x: torch.Tensor, picked: torch.Tensor) -> torch.Tensor:
                out = torch.zeros_like(x)
                for index in range(self.num_experts):
                    rows = torch.where(picked == index)[0]
                    out[rows] += self.experts[index](x[rows])
                return out
        ---
        class Moe_{u}(nn.Module):
            def __init__(self, dim: int, count: int):
                super().__init__()
                self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(count)])

            def forward(self, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
                out = torch.zeros_like(x)
                for index, expert in enumerate(self.experts):
                    out = out + weights[:, index, None] * expert(x)
                return out
        """,
        """
        class Stack_{u}(nn.Module):
            def __init__(self, dim: int, count: int):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(count)])

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    x = layer(x)
                return x
        ---
        class Grouped_{u}(nn.Module):
            def __init__(self, dim: int, num_experts: int):
                super().__init__()
                self.weight = nn.Parameter(torch.empty(num_experts, dim, dim))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.bmm(x, self.weight)
        """,
    ),
    faults(
        "AWP205",
        "module",
        """
        from transformers import LogitsProcessor as _Processor_{u}


        class Ban_{u}(_Processor_{u}):
            def __init__(self, banned: list):
                self.banned = banned

            def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
                for row in range(scores.shape[0]):
                    scores[row, self.banned[row]] = float("-inf")
                return scores
        """,
        """
        from transformers import LogitsProcessor as _Processor_{u}


        class Ban_{u}(_Processor_{u}):
            def __init__(self, banned: torch.Tensor):
                self.banned = banned

            def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
                return scores.masked_fill(self.banned, float("-inf"))
        """,
    ),
    faults(
        "AWP206",
        "module",
        """
        @torch.inference_mode()
        def predict_{u}(model: nn.Module, images):
            from torch.utils.data import DataLoader

            found = []
            for batch in DataLoader(images, batch_size=32):
                found.append(model(batch.to("cuda")))
            return found
        ---
        @torch.no_grad()
        def embed_{u}(encoder: nn.Module, images):
            from torch.utils.data import DataLoader

            loader = DataLoader(images, num_workers=4)
            return [encoder(batch.to("cuda")) for batch in loader]
        """,
        """
        @torch.inference_mode()
        def predict_{u}(model: nn.Module, images):
            from torch.utils.data import DataLoader

            found = []
            for batch in DataLoader(images, batch_size=32, num_workers=4, pin_memory=True):
                found.append(model(batch.to("cuda", non_blocking=True)))
            return found
        ---
        def train_{u}(model: nn.Module, images, optimizer):
            from torch.utils.data import DataLoader

            for batch in DataLoader(images):
                model(batch.to("cuda")).mean().backward()
                optimizer.step()
        """,
    ),
    faults(
        "AWP208",
        "module",
        """
        def predict_{u}(name: str, texts: list[str]):
            from transformers import pipeline

            classify = pipeline("text-classification", model=name, device=0)
            labels = []
            for text in texts:
                labels.append(classify(text)[0])
            return labels
        ---
        def embed_{u}(name: str, texts: list[str]):
            from sentence_transformers import SentenceTransformer

            encoder = SentenceTransformer(name)
            return [encoder.encode(text) for text in texts]
        """,
        """
        def predict_{u}(name: str, texts: list[str]):
            from transformers import pipeline

            classify = pipeline("text-classification", model=name, device=0)
            return classify(texts, batch_size=16)
        ---
        def embed_{u}(name: str, texts: list[str]):
            from sentence_transformers import SentenceTransformer

            return SentenceTransformer(name).encode(texts, batch_size=32)
        """,
    ),
    faults(
        "AWP209",
        "class",
        """
        @torch.inference_mode()
        def generate_text_{u}(self, tokenizer, token: torch.Tensor, max_new_tokens: int):
            ids, cache = [], None
            for _ in range(max_new_tokens):
                out = self(token, past_key_values=cache)
                cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
                ids.append(token)
                yield tokenizer.decode(ids)
        ---
        @torch.no_grad()
        def generate_until_{u}(self, tokenizer, ids: torch.Tensor, max_new_tokens: int, stop: str):
            cache, step = None, ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache)
                cache, step = out.past_key_values, out.logits[:, -1:].argmax(-1)
                ids = torch.cat([ids, step], dim=1)
                if tokenizer.batch_decode(ids)[0].endswith(stop):
                    break
            return ids
        """,
        """
        @torch.inference_mode()
        def generate_text_{u}(self, tokenizer, token: torch.Tensor, max_new_tokens: int):
            ids, cache = [], None
            for _ in range(max_new_tokens):
                out = self(token, past_key_values=cache)
                cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
                ids.append(token)
            return tokenizer.decode(ids)
        ---
        @torch.inference_mode()
        def generate_tail_{u}(self, tokenizer, token: torch.Tensor, max_new_tokens: int):
            ids, cache = [], None
            for _ in range(max_new_tokens):
                out = self(token, past_key_values=cache)
                cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
                ids.append(token)
                yield tokenizer.decode(ids[-4:])
        """,
    ),
    faults(
        "AWP210",
        "module",
        """
        @torch.inference_mode()
        def generate_image_{u}(unet: nn.Module, latents: torch.Tensor, cond, uncond, scheduler, timesteps, scale):
            for t in timesteps:
                empty = unet(latents, t, uncond)
                noise = unet(latents, t, cond)
                mixed = empty + scale * (noise - empty)
                latents = scheduler.step(mixed, t, latents)
            return latents
        """,
        """
        @torch.inference_mode()
        def generate_image_{u}(unet: nn.Module, latents: torch.Tensor, both, scheduler, timesteps, guidance_scale):
            for t in timesteps:
                empty, noise = unet(torch.cat([latents, latents]), t, both).chunk(2)
                mixed = empty + guidance_scale * (noise - empty)
                latents = scheduler.step(mixed, t, latents)
            return latents
        """,
    ),
)
