"""Faults and look-alikes of the rules 5xx: attention and its cache."""

from __future__ import annotations

from faults.table import faults

ATTENTION = (
    faults(
        "AWP501",
        "layer",
        """
        query_{u}, key_{u}, value_{u} = {x}.unsqueeze(1), {x}.unsqueeze(1), {x}.unsqueeze(1)
        scores_{u} = torch.matmul(query_{u}, key_{u}.transpose(-2, -1)) / math.sqrt(query_{u}.size(-1))
        probs_{u} = F.softmax(scores_{u}, dim=-1)
        {x} = torch.matmul(probs_{u}, value_{u}).squeeze(1)
        ---
        scale_{u} = {x}.shape[-1] ** -0.5
        {x} = (({x} @ {x}.transpose(-2, -1)) * scale_{u}).softmax(dim=-1) @ {x}
        ---
        flat_{u} = {x}.reshape(-1, {x}.shape[-2], {x}.shape[-1])
        weights_{u} = torch.bmm(flat_{u}, flat_{u}.transpose(1, 2)) * (flat_{u}.shape[-1] ** -0.5)
        weights_{u} = weights_{u}.softmax(dim=-1)
        {x} = torch.bmm(weights_{u}, flat_{u}).reshape({x}.shape)
        ---
        scores_{u} = torch.einsum("bqd,bkd->bqk", {x}, {x}) / math.sqrt({x}.shape[-1])
        scores_{u} = torch.softmax(scores_{u}.float(), dim=-1).to({x}.dtype)
        {x} = torch.einsum("bqk,bkd->bqd", scores_{u}, {x})
        """,
        """
        near_{u} = torch.matmul({x}, {x}.transpose(-2, -1)).softmax(dim=-1)
        self.near = near_{u}
        ---
        gate_{u} = {x}.softmax(dim=-1)
        {x} = {x} * gate_{u}
        ---
        {x} = F.scaled_dot_product_attention({x}, {x}, {x})
        ---
        gram_{u} = torch.matmul({x}, {x}.transpose(-2, -1)) / {x}.shape[-1]
        {x} = torch.matmul(gram_{u}, {x})
        """,
    ),
    faults(
        "AWP502",
        "file",
        """
        def load_{u}(name: str):
            from transformers import AutoModelForCausalLM

            return AutoModelForCausalLM.from_pretrained(name, attn_implementation="eager").to("cuda").eval()
        ---
        def serve_{u}(name: str):
            from transformers import AutoModel

            model = AutoModel.from_pretrained(name, dtype=torch.bfloat16, attn_implementation="eager")
            return model.to("cuda").eval()
        """,
        """
        def load_{u}(name: str):
            from transformers import AutoModelForCausalLM

            return AutoModelForCausalLM.from_pretrained(name, attn_implementation="sdpa").to("cuda").eval()
        ---
        def load_{u}(name: str, attention: str):
            from transformers import AutoModelForCausalLM

            return AutoModelForCausalLM.from_pretrained(name, attn_implementation=attention).to("cuda").eval()
        ---
        def weights_{u}(name: str, ids):
            from transformers import AutoModel

            model = AutoModel.from_pretrained(name, attn_implementation="eager").to("cuda").eval()
            return model(ids, output_attentions=True).attentions
        """,
    ),
    faults(
        "AWP503",
        "layer",
        """
        query_{u} = {x}.reshape(1, 8, -1, 16)
        key_{u} = {x}.reshape(1, 2, -1, 16).repeat_interleave(4, dim=1)
        value_{u} = {x}.reshape(1, 2, -1, 16).repeat_interleave(4, dim=1)
        self.mixed = F.scaled_dot_product_attention(query_{u}, key_{u}, value_{u}, is_causal=True)
        ---
        query_{u} = {x}.reshape(1, 8, -1, 16)
        key_{u} = torch.repeat_interleave({x}.reshape(1, 2, -1, 16), 4, dim=1)
        value_{u} = torch.repeat_interleave({x}.reshape(1, 2, -1, 16), 4, dim=1)
        self.mixed = F.scaled_dot_product_attention(query_{u}, key_{u}, value_{u})
        """,
        """
        query_{u} = {x}.reshape(1, 8, -1, 16)
        key_{u} = {x}.reshape(1, 2, -1, 16)
        self.mixed = F.scaled_dot_product_attention(query_{u}, key_{u}, key_{u}, is_causal=True, enable_gqa=True)
        ---
        heads_{u} = {x}.reshape(1, 8, -1, 16)
        self.mixed = F.scaled_dot_product_attention(heads_{u}, heads_{u}, heads_{u}, is_causal=True)
        ---
        heads_{u} = {x}.reshape(1, 8, -1, 16).repeat_interleave(2, dim=0)
        self.mixed = F.scaled_dot_product_attention(heads_{u}, heads_{u}, heads_{u})
        """,
    ),
    faults(
        "AWP504",
        "layer",
        """
        length_{u} = {x}.shape[-2]
        mask_{u} = torch.ones(length_{u}, length_{u}, dtype=torch.bool, device={x}.device).tril()
        {x} = F.scaled_dot_product_attention({x}, {x}, {x}, attn_mask=mask_{u})
        ---
        length_{u} = {x}.size(-2)
        mask_{u} = torch.tril(torch.ones((length_{u}, length_{u}), device={x}.device, dtype=torch.bool))
        {x} = F.scaled_dot_product_attention({x}, {x}, {x}, mask_{u})
        ---
        length_{u} = {x}.size(-2)
        mask_{u} = torch.full((length_{u}, length_{u}), float("-inf"), device={x}.device).triu(1)
        {x} = F.scaled_dot_product_attention({x}, {x}, {x}, attn_mask=mask_{u})
        """,
        """
        {x} = F.scaled_dot_product_attention({x}, {x}, {x}, is_causal=True)
        ---
        length_{u} = {x}.shape[-2]
        mask_{u} = torch.ones(length_{u}, length_{u}, dtype=torch.bool, device={x}.device).tril()
        mask_{u} = mask_{u} & ({x}.abs().sum(-1) > 0).unsqueeze(-2)
        {x} = F.scaled_dot_product_attention({x}, {x}, {x}, attn_mask=mask_{u})
        ---
        length_{u} = {x}.shape[-2]
        mask_{u} = torch.ones(length_{u}, length_{u}, dtype=torch.bool, device={x}.device).tril().triu(-128)
        {x} = F.scaled_dot_product_attention({x}, {x}, {x}, attn_mask=mask_{u})
        """,
    ),
    faults(
        "AWP505",
        "module",
        """
        class Block_{u}(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                self.attn = nn.MultiheadAttention(dim, 8, batch_first=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                out, _ = self.attn(x, x, x)
                return x + out


        class Encoder_{u}(nn.Module):
            def __init__(self, dim: int, depth: int):
                super().__init__()
                self.layers = nn.ModuleList([Block_{u}(dim) for _ in range(depth)])

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    x = layer(x)
                return x
        ---
        class Mixer_{u}(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                self.mix = nn.MultiheadAttention(dim, 4)

            def forward(self, query: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
                return self.mix(query, memory, memory)[0]


        class Decoder_{u}(nn.Module):
            def __init__(self, dim: int, depth: int):
                super().__init__()
                self.blocks = nn.ModuleList(Mixer_{u}(dim) for _ in range(depth))

            def forward(self, queries: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
                for block in self.blocks:
                    queries = queries + block(queries, memory)
                return queries
        """,
        """
        class Block_{u}(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                self.attn = nn.MultiheadAttention(dim, 8, batch_first=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                out, _ = self.attn(x, x, x, need_weights=False)
                return x + out


        class Encoder_{u}(nn.Module):
            def __init__(self, dim: int, depth: int):
                super().__init__()
                self.layers = nn.ModuleList([Block_{u}(dim) for _ in range(depth)])

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    x = layer(x)
                return x
        ---
        class Shown_{u}(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                self.attn = nn.MultiheadAttention(dim, 8)

            def forward(self, x: torch.Tensor):
                out, weights = self.attn(x, x, x)
                return out, weights
        ---
        class Pool_{u}(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                self.probe = nn.Parameter(torch.zeros(1, 1, dim))
                self.attn = nn.MultiheadAttention(dim, 8, batch_first=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                probe = self.probe.expand(x.shape[0], -1, -1)
                return self.attn(probe, x, x)[0][:, 0]
        """,
    ),
    faults(
        "AWP506",
        "decoder",
        """
        key_{u} = {x}.unsqueeze(1)
        self.past_key = torch.cat([self.past_key, key_{u}], dim=2)
        ---
        value_{u} = {x}.unsqueeze(1)
        past_value_{u} = torch.cat((self.value_cache, value_{u}), dim=-2)
        self.value_cache = past_value_{u}
        ---
        k_{u} = {x}.unsqueeze(1)
        self.k_cache = torch.cat([self.k_cache, k_{u}], dim=1)
        """,
        """
        self.key_cache[:, : {x}.shape[1]] = {x}
        ---
        both_{u} = torch.cat([{x}, {x}], dim=-1)
        {x} = both_{u}[..., : {x}.shape[-1]]
        ---
        start_{u} = 0
        self.past_key[:, start_{u} : start_{u} + {x}.shape[1]] = {x}
        """,
    ),
    faults(
        "AWP506",
        "encoder",
        "",
        """
        key_{u} = {x}.unsqueeze(1)
        if getattr(self, "past_key", None) is not None:
            key_{u} = torch.cat([self.past_key, key_{u}], dim=2)
        ---
        value_{u} = {x}.unsqueeze(1)
        past_value_{u} = getattr(self, "past_value", None)
        if past_value_{u} is not None:
            value_{u} = torch.cat((past_value_{u}, value_{u}), dim=-2)
        """,
    ),
    faults(
        "AWP507",
        "class",
        """
        @torch.inference_mode()
        def generate_answer_{u}(self, input_ids: torch.LongTensor):
            return self.generate(input_ids, max_new_tokens=128, use_cache=False)
        ---
        @torch.no_grad()
        def predict_{u}(self, input_ids: torch.LongTensor, attention_mask: torch.Tensor):
            return self.generate(
                input_ids=input_ids,
                attention_mask=attention_mask,
                use_cache=False,
                max_new_tokens=64,
            )
        """,
        """
        @torch.inference_mode()
        def generate_answer_{u}(self, input_ids: torch.LongTensor):
            return self.generate(input_ids, max_new_tokens=128)
        ---
        @torch.inference_mode()
        def score_{u}(self, input_ids: torch.LongTensor):
            return self(input_ids, use_cache=False).logits
        """,
    ),
    faults(
        "AWP508",
        "layer",
        """
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            {x} = F.scaled_dot_product_attention({x}, {x}, {x})
        ---
        with torch.backends.cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
            {x} = F.scaled_dot_product_attention({x}, {x}, {x})
        ---
        backends_{u} = [torch.nn.attention.SDPBackend.MATH]
        with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
            {x} = F.scaled_dot_product_attention({x}, {x}, {x})
        """,
        """
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            {x} = F.scaled_dot_product_attention({x}, {x}, {x})
        ---
        with torch.backends.cuda.sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=False):
            {x} = F.scaled_dot_product_attention({x}, {x}, {x})
        ---
        {x} = F.scaled_dot_product_attention({x}, {x}, {x})
        """,
    ),
    faults(
        "AWP509",
        "class",
        """
        @torch.inference_mode()
        def generate_extend_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            for _ in range(max_new_tokens):
                logits = self(input_ids).logits
                token = logits[:, -1].argmax(-1, keepdim=True)
                input_ids = torch.cat([input_ids, token], dim=-1)
            return input_ids
        ---
        @torch.no_grad()
        def generate_continue_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            for _ in range(max_new_tokens):
                out = self(input_ids=input_ids)
                input_ids = torch.cat((input_ids, out.logits[:, -1:].argmax(-1)), dim=1)
            return input_ids
        """,
        """
        @torch.inference_mode()
        def generate_extend_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache, step = out.past_key_values, out.logits[:, -1:].argmax(-1)
                input_ids = torch.cat([input_ids, step], dim=-1)
            return input_ids
        """,
    ),
    faults(
        "AWP510",
        "module",
        """
        def chat_{u}(name: str):
            from transformers import AutoModelForCausalLM, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name).to("cuda").eval()
            messages = []
            while True:
                messages.append({{"role": "user", "content": input()}})
                ids = tokenizer.apply_chat_template(messages, return_tensors="pt").to("cuda")
                out = model.generate(ids, max_new_tokens=64)
                messages.append({{"role": "assistant", "content": tokenizer.decode(out[0, ids.shape[1] :])}})
        """,
        """
        def chat_{u}(name: str):
            from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name).to("cuda").eval()
            messages, cache = [], DynamicCache()
            while True:
                messages.append({{"role": "user", "content": input()}})
                ids = tokenizer.apply_chat_template(messages, return_tensors="pt").to("cuda")
                out = model.generate(ids, max_new_tokens=64, past_key_values=cache)
                messages.append({{"role": "assistant", "content": tokenizer.decode(out[0, ids.shape[1] :])}})
        ---
        def answers_{u}(name: str, questions: list):
            from transformers import AutoModelForCausalLM, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")
            model = AutoModelForCausalLM.from_pretrained(name).to("cuda").eval()
            ids = tokenizer(questions, padding=True, return_tensors="pt").to("cuda")
            return tokenizer.batch_decode(model.generate(**ids, max_new_tokens=64))
        """,
    ),
)
