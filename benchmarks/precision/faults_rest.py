"""Faults and look-alikes of the families 2xx, 3xx, 7xx, 8xx and 9xx; :mod:`faults` says what the kinds mean."""

from __future__ import annotations

from faults import Faults, snippets


def _faults(rule: str, kind: str, bad: str, good: str, same: tuple[str, ...] = ()) -> Faults:
    return Faults(rule, kind, snippets(bad), snippets(good), same)


BATCHING = (
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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

FUSION = (
    _faults(
        "AWP302",
        "layer",
        """
        variance_{u} = {x}.pow(2).mean(-1, keepdim=True)
        {x} = {x} * torch.rsqrt(variance_{u} + 1e-6)
        ---
        mean_{u} = {x}.mean(-1, keepdim=True)
        spread_{u} = {x}.var(-1, keepdim=True, unbiased=False)
        {x} = ({x} - mean_{u}) / torch.sqrt(spread_{u} + 1e-5)
        """,
        """
        {x} = F.layer_norm({x}, {x}.shape[-1:])
        ---
        centre_{u} = {x}.mean(-1, keepdim=True)
        {x} = {x} - centre_{u}
        """,
    ),
    _faults(
        "AWP303",
        "layer",
        """
        {x} = 0.5 * {x} * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * ({x} + 0.044715 * torch.pow({x}, 3.0))))
        ---
        {x} = {x} * torch.sigmoid({x})
        ---
        {x} = {x} * 0.5 * (1.0 + torch.erf({x} / math.sqrt(2.0)))
        """,
        """
        {x} = F.gelu({x}, approximate="tanh")
        ---
        gate_{u} = torch.sigmoid({x})
        {x} = gate_{u} * 2.0
        ---
        {x} = F.silu({x})
        """,
    ),
    _faults(
        "AWP306",
        "decoder",
        """
        freq_{u} = 1.0 / (10000.0 ** (torch.arange(0, 64, 2, device={x}.device).float() / 64))
        {x} = {x} + 0.0 * freq_{u}.sum()
        ---
        mask_{u} = torch.full((64, 64), float("-inf"), device={x}.device).triu(1)
        {x} = {x} + 0.0 * mask_{u}[0, 0]
        """,
        """
        {x} = {x} + 0.5
        ---
        ramp_{u} = {x} * 0.5
        {x} = {x} + ramp_{u}
        """,
    ),
    _faults(
        "AWP306",
        "encoder",
        """
        length_{u} = {x}.shape[1]
        mask_{u} = torch.full((length_{u}, length_{u}), float("-inf"), device={x}.device).triu(1)
        {x} = {x} + 0.0 * mask_{u}[0, 0]
        ---
        near_{u} = torch.tril(torch.ones({x}.shape[1], {x}.shape[1], device={x}.device), diagonal=128)
        {x} = {x} * near_{u}[-1, 0]
        """,
        """
        freq_{u} = 1.0 / (10000.0 ** (torch.arange(0, 64, 2, device={x}.device).float() / 64))
        {x} = {x} + 0.0 * freq_{u}.sum()
        ---
        mask_{u} = torch.full((64, 64), float("-inf"), device={x}.device).triu(1)
        {x} = {x} + 0.0 * mask_{u}[0, 0]
        """,
    ),
    _faults(
        "AWP307",
        "layer",
        """
        {x} = {x}.contiguous().contiguous()
        ---
        {x} = {x}.to(torch.float32).to(torch.float32)
        ---
        {x} = {x}.detach().detach()
        """,
        """
        {x} = {x}.transpose(-1, -2).contiguous().transpose(-1, -2)
        ---
        {x} = {x}.to(torch.bfloat16).to(torch.float32)
        ---
        {x} = {x}.detach().clone()
        """,
    ),
    _faults(
        "AWP309",
        "class",
        """
        @torch.inference_mode()
        def generate_more_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache, step = out.past_key_values, out.logits[:, -1:].argmax(-1)
                input_ids = torch.cat([input_ids, step], dim=-1)
            return input_ids
        """,
        """
        @torch.inference_mode()
        def generate_more_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            out_ids = input_ids.new_empty(input_ids.shape[0], max_new_tokens)
            cache, step = None, input_ids
            for index in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache, step = out.past_key_values, out.logits[:, -1:].argmax(-1)
                out_ids[:, index : index + 1] = step
            return out_ids
        """,
    ),
)

PRECISION = (
    _faults(
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
    _faults(
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
    _faults(
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

SERVING = (
    _faults(
        "AWP804",
        "module",
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, enforce_eager=True)
        ---
        def engine_{u}(name: str):
            import sglang

            return sglang.Engine(model_path=name, disable_cuda_graph=True)
        """,
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, enforce_eager=False)
        ---
        def engine_{u}(name: str, eager: bool):
            from vllm import LLM

            return LLM(model=name, enforce_eager=eager)
        """,
    ),
    _faults(
        "AWP805",
        "module",
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, max_num_seqs=1)
        ---
        def engine_{u}(name: str):
            from vllm import AsyncEngineArgs

            return AsyncEngineArgs(model=name, gpu_memory_utilization=0.3)
        """,
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, max_num_seqs=256, gpu_memory_utilization=0.9)
        """,
    ),
    _faults(
        "AWP806",
        "module",
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, enable_prefix_caching=False)
        ---
        def engine_{u}(name: str):
            import sglang

            return sglang.Engine(model_path=name, disable_radix_cache=True)
        """,
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, enable_prefix_caching=True, enable_chunked_prefill=True)
        """,
    ),
    _faults(
        "AWP811",
        "module",
        """
        def start_{u}() -> None:
            import os

            os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        ---
        def start_{u}() -> None:
            torch.autograd.set_detect_anomaly(True)
        """,
        """
        def start_{u}() -> None:
            import os

            os.environ["CUDA_LAUNCH_BLOCKING"] = "0"
        ---
        def start_{u}() -> None:
            torch.autograd.set_detect_anomaly(False)
        """,
    ),
)

COMMUNICATION = (
    _faults(
        "AWP901",
        "layer",
        """
        for part_{u} in {x}.unbind(0):
            torch.distributed.all_reduce(part_{u})
        """,
        """
        torch.distributed.all_reduce({x})
        """,
    ),
    _faults(
        "AWP902",
        "layer",
        """
        flags_{u} = [None]
        torch.distributed.broadcast_object_list(flags_{u}, src=0)
        ---
        torch.distributed.barrier()
        """,
        """
        torch.distributed.broadcast({x}, src=0)
        ---
        rank_{u} = torch.distributed.get_rank()
        {x} = {x} * float(rank_{u} >= 0)
        """,
    ),
)

REST = (*BATCHING, *FUSION, *PRECISION, *SERVING, *COMMUNICATION)
