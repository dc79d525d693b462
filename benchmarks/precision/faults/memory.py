"""Faults and look-alikes of the rules 6xx: memory and copies."""

from __future__ import annotations

from faults.table import faults

MEMORY = (
    faults(
        "AWP601",
        "layer",
        """
        scale_{u} = torch.tensor([0.5, 1.0, 2.0], device={x}.device)
        {x} = {x} * scale_{u}.mean()
        ---
        scale_{u} = torch.tensor([0.5, 1.0, 2.0]).to({x}.device)
        {x} = {x} * scale_{u}.mean()
        ---
        shift_{u} = torch.as_tensor(np.array([1.0, 2.0]), device={x}.device)
        {x} = {x} + 0.0 * shift_{u}.sum()
        ---
        one_{u} = torch.tensor(1.0, device={x}.device, dtype={x}.dtype)
        {x} = {x} * one_{u}
        """,
        """
        scale_{u} = torch.full((3,), 0.5, device={x}.device)
        {x} = {x} * scale_{u}.mean()
        ---
        one_{u} = torch.ones((), device={x}.device, dtype={x}.dtype)
        {x} = {x} * one_{u}
        ---
        {x} = {x} * 0.5 + 1.0
        ---
        table_{u} = {x}.new_zeros(3)
        {x} = {x} + table_{u}.sum()
        """,
    ),
    faults(
        "AWP602",
        "layer",
        """
        base_{u} = torch.zeros({x}.shape[-1]).to({x}.device)
        {x} = {x} + base_{u}
        ---
        steps_{u} = torch.arange({x}.shape[-1]).to({x}.device)
        {x} = {x} + 0.0 * steps_{u}
        ---
        eye_{u} = torch.eye({x}.shape[-1]).to(device={x}.device)
        {x} = {x} @ eye_{u}
        ---
        full_{u} = torch.full(({x}.shape[-1],), 0.5).to({x}.device)
        {x} = {x} * full_{u}
        """,
        """
        base_{u} = torch.zeros({x}.shape[-1], device={x}.device)
        {x} = {x} + base_{u}
        ---
        steps_{u} = torch.arange({x}.shape[-1], device={x}.device)
        {x} = {x} + 0.0 * steps_{u}
        ---
        like_{u} = torch.zeros_like({x}).to({x}.dtype)
        {x} = {x} + like_{u}
        ---
        size_{u} = torch.empty(0).element_size()
        {x} = {x} * float(size_{u} > 0)
        """,
    ),
    faults(
        "AWP603",
        "layer",
        """
        table_{u} = torch.tensor(list({x}.shape)).cumsum(0)
        {x} = {x} + 0.0 * table_{u}.to({x}.device).sum()
        ---
        table_{u} = torch.from_numpy(np.arange({x}.shape[-1], dtype=np.float32))
        {x} = {x} + 0.0 * table_{u}.cuda()
        ---
        table_{u} = torch.tensor(list({x}.shape)).cumsum(0)
        {x} = {x} + 0.0 * table_{u}.to({x}.device, non_blocking=True).sum()
        """,
        """
        table_{u} = torch.tensor(list({x}.shape)).cumsum(0).pin_memory()
        {x} = {x} + 0.0 * table_{u}.to({x}.device, non_blocking=True).sum()
        ---
        table_{u} = torch.arange({x}.shape[-1], device={x}.device).cumsum(0)
        {x} = {x} + 0.0 * table_{u}.to({x}.device).sum()
        ---
        {x} = {x}.to({x}.device)
        """,
    ),
    faults(
        "AWP604",
        "layer",
        """
        array_{u} = np.clip({x}.float().cpu().numpy(), -3.0, 3.0)
        {x} = torch.from_numpy(array_{u}).to({x}.device)
        ---
        host_{u} = {x}.cpu()
        host_{u} = host_{u}.clamp(-3.0, 3.0)
        {x} = host_{u}.to({x}.device)
        ---
        rows_{u} = {x}.mean(dim=-1).flatten().tolist()
        rows_{u} = [max(row, 0.0) for row in rows_{u}]
        {x} = {x} + torch.tensor(rows_{u}, device={x}.device).sum()
        """,
        """
        {x} = {x}.clamp(-3.0, 3.0).to({x}.device)
        ---
        array_{u} = np.clip(np.ones({x}.shape[-1], dtype=np.float32), 0.0, 1.0)
        {x} = {x} * float(array_{u}[0])
        ---
        wide_{u} = {x}.float()
        {x} = wide_{u}.clamp(-3.0, 3.0).to({x}.dtype)
        """,
    ),
    faults(
        "AWP605",
        "layer",
        """
        torch.cuda.empty_cache()
        ---
        gc.collect()
        ---
        gc.collect()
        torch.cuda.empty_cache()
        """,
        """
        if self.training:
            torch.cuda.empty_cache()
        ---
        used_{u} = torch.cuda.memory_allocated()
        {x} = {x} * float(used_{u} >= 0)
        ---
        gc.disable()
        """,
    ),
    faults(
        "AWP606",
        "class",
        """
        @torch.inference_mode()
        def predict_{u}(self, input_ids: torch.LongTensor):
            self.to("cuda")
            logits = self(input_ids.to("cuda")).logits.cpu()
            self.to("cpu")
            return logits
        ---
        @torch.inference_mode()
        def generate_half_{u}(self, input_ids: torch.LongTensor):
            self.model.half()
            out = self.model(input_ids)
            self.model.float()
            return out[0]
        """,
        """
        @torch.inference_mode()
        def predict_{u}(self, input_ids: torch.LongTensor):
            return self(input_ids.to("cuda")).logits
        ---
        def load_{u}(self, device: str):
            self.to(device)
            return self.eval()
        ---
        @torch.inference_mode()
        def predict_{u}(self, input_ids: torch.LongTensor):
            self.to("cuda")
            return self(input_ids).logits
        ---
        @torch.inference_mode()
        def generate_half_{u}(self, input_ids: torch.LongTensor):
            self.model.half()
            out = self.model(input_ids)
            return out[0]
        """,
    ),
    faults(
        "AWP606",
        "module",
        """
        class Positions_{u}(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                self.table = torch.outer(torch.arange(4096), 10000.0 ** (-torch.arange(0, dim, 2) / dim))

            def forward(self, positions: torch.Tensor) -> torch.Tensor:
                return self.table.to(positions.device)[positions]


        class Rotated_{u}(nn.Module):
            def __init__(self, dim: int, depth: int):
                super().__init__()
                self.layers = nn.ModuleList([Positions_{u}(dim) for _ in range(depth)])

            def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    x = x * layer(positions).cos()
                return x
        ---
        class Bias_{u}(nn.Module):
            def __init__(self, heads: int):
                super().__init__()
                self.slopes = 2.0 ** -torch.arange(1, heads + 1)

            def forward(self, scores: torch.Tensor) -> torch.Tensor:
                return scores + self.slopes.to(scores.device, scores.dtype)[:, None, None]


        class Biased_{u}(nn.Module):
            def __init__(self, heads: int, depth: int):
                super().__init__()
                self.blocks = nn.ModuleList([Bias_{u}(heads) for _ in range(depth)])

            def forward(self, scores: torch.Tensor) -> torch.Tensor:
                for block in self.blocks:
                    scores = block(scores)
                return scores
        """,
        """
        class Positions_{u}(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                table = torch.outer(torch.arange(4096), 10000.0 ** (-torch.arange(0, dim, 2) / dim))
                self.register_buffer("table", table, persistent=False)

            def forward(self, positions: torch.Tensor) -> torch.Tensor:
                return self.table.to(positions.device)[positions]
        ---
        class Bias_{u}(nn.Module):
            def __init__(self, heads: int):
                super().__init__()
                self.slopes = 2.0 ** -torch.arange(1, heads + 1)

            def forward(self, scores: torch.Tensor) -> torch.Tensor:
                self.slopes = self.slopes.to(scores.device, scores.dtype)
                return scores + self.slopes[:, None, None]
        ---
        class Cepstra_{u}(nn.Module):
            def __init__(self, bins: int):
                super().__init__()
                self.table = torch.cos(torch.outer(torch.arange(bins), torch.arange(bins) + 0.5))

            def forward(self, spectrum: torch.Tensor) -> torch.Tensor:
                return spectrum @ self.table.to(spectrum.device)
        """,
    ),
    faults(
        "AWP607",
        "layer",
        """
        kept_{u} = copy.deepcopy({x})
        {x} = kept_{u}
        ---
        self.last = copy.deepcopy({{"hidden": {x}, "scaled": {x} * 0.5}})
        """,
        """
        state_{u} = copy.copy(self.__dict__.get("state"))
        self.last = state_{u}
        ---
        if self.training:
            self.last = copy.deepcopy({x})
        ---
        sizes_{u} = copy.deepcopy(list({x}.shape))
        {x} = {x}.reshape(sizes_{u})
        """,
    ),
    faults(
        "AWP607",
        "class",
        """
        @torch.inference_mode()
        def generate_careful_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=copy.deepcopy(cache), use_cache=True)
                cache = out.past_key_values
                step = out.logits[:, -1:].argmax(-1)
            return step
        ---
        @torch.no_grad()
        def generate_ahead_{u}(self, input_ids: torch.LongTensor, past_key_values, max_new_tokens: int):
            for _ in range(max_new_tokens):
                kept = copy.deepcopy(past_key_values)
                ahead = self(input_ids[:, -1:], past_key_values=kept, use_cache=True).logits.argmax(-1)
                out = self(ahead, past_key_values=past_key_values, use_cache=True)
                input_ids = torch.cat([input_ids, out.logits[:, -1:].argmax(-1)], dim=1)
            return input_ids
        """,
        """
        @torch.inference_mode()
        def answers_{u}(self, prefix: torch.LongTensor, prompts: list):
            cache = self(prefix, use_cache=True).past_key_values
            found = []
            for prompt in prompts:
                found.append(self(prompt, past_key_values=copy.deepcopy(cache)).logits[:, -1])
            return found
        ---
        @torch.inference_mode()
        def generate_careful_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                step = out.logits[:, -1:].argmax(-1)
            return step
        """,
    ),
    faults(
        "AWP608",
        "module",
        """
        def load_{u}(name: str):
            from transformers import AutoModelForCausalLM

            return AutoModelForCausalLM.from_pretrained(name).half().to("cuda").eval()
        ---
        def load_{u}(name: str):
            from transformers import AutoModel

            model = AutoModel.from_pretrained(name)
            model = model.to(torch.bfloat16)
            return model.to("cuda").eval()
        """,
        """
        def load_{u}(name: str):
            from transformers import AutoModelForCausalLM

            return AutoModelForCausalLM.from_pretrained(name, dtype=torch.float16).to("cuda").eval()
        ---
        def load_{u}(name: str):
            from transformers import AutoModel

            return AutoModel.from_pretrained(name).to("cuda").eval()
        """,
    ),
    faults(
        "AWP609",
        "module",
        """
        def load_{u}(name: str):
            from diffusers import DiffusionPipeline

            pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16).to("cuda")
            pipe.enable_model_cpu_offload()
            return pipe
        ---
        def load_{u}(name: str):
            from diffusers import DiffusionPipeline

            pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
            pipe.to("cuda")
            pipe.enable_sequential_cpu_offload()
            return pipe
        """,
        """
        def load_{u}(name: str):
            from diffusers import DiffusionPipeline

            return DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16).to("cuda")
        ---
        def load_{u}(name: str):
            from diffusers import DiffusionPipeline

            pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
            pipe.enable_model_cpu_offload()
            return pipe
        """,
    ),
)
