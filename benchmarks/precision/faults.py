"""What the injection writes into real code: for each rule faults, and look-alikes that are right as they are.

``{x}`` is a floating point tensor that the function was given, ``{u}`` makes names unique. A fault of kind ``layer``
stands at the head of a real ``forward``; ``decoder`` the same where that is handed the cache of a generation, and
``encoder`` where nothing in the file generates; ``class`` is a method added to a real model that generates; ``module``
is code added at the end of a real file, ``file`` the same in a file without a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Faults:
    """Snippets of one rule, or of one kind of its faults, and where they go (``kind``)."""

    rule: str
    kind: str
    bad: tuple[str, ...]
    good: tuple[str, ...]
    same: tuple[str, ...] = ()  # rules whose findings on the same lines name the same fault

    def snippets(self, fault: bool) -> tuple[str, ...]:
        """The faults, or the look-alikes."""
        return self.bad if fault else self.good


def snippets(text: str) -> tuple[str, ...]:
    """Snippets parted by lines of dashes."""
    return tuple(dedent(part).strip("\n") for part in dedent(text).split("---\n") if part.strip())


def _faults(rule: str, kind: str, bad: str, good: str, same: tuple[str, ...] = ()) -> Faults:
    return Faults(rule, kind, snippets(bad), snippets(good), same)


SYNC = (
    _faults(
        "AWP101",
        "layer",
        """
        peak_{u} = {x}.abs().max().item()
        {x} = {x} / max(peak_{u}, 1.0)
        ---
        spread_{u} = float({x}.std())
        {x} = {x} * (1.0 + 1e-6 * spread_{u})
        ---
        norms_{u} = {x}.norm(dim=-1).flatten().tolist()
        {x} = {x} / (1.0 + 1e-6 * max(norms_{u}))
        ---
        best_{u} = int({x}.argmax())
        {x} = {x} * (1.0 + 1e-9 * best_{u})
        ---
        low_{u} = torch.amin({x}).cpu()
        self.lowest = low_{u}
        ---
        values_{u} = {x}.mean(dim=-1).detach().cpu().numpy()
        self.means = values_{u}
        """,
        """
        rows_{u} = float({x}.shape[0])
        {x} = {x} * (rows_{u} / rows_{u})
        ---
        width_{u} = int({x}.size(-1))
        {x} = {x} * (width_{u} / max(width_{u}, 1))
        ---
        sizes_{u} = list({x}.shape)
        {x} = {x}.reshape(sizes_{u})
        ---
        share_{u} = np.float32(0.5).item()
        {x} = {x} * (share_{u} + 0.5)
        ---
        count_{u} = {x}.numel()
        {x} = {x} * float(count_{u} > 0)
        ---
        if self.training:
            {x} = {x} / max({x}.abs().max().item(), 1.0)
        """,
    ),
    _faults(
        "AWP102",
        "layer",
        """
        if ({x} > 1e4).any():
            {x} = {x}.clamp(max=1e4)
        ---
        if torch.isnan({x}).any():
            {x} = torch.nan_to_num({x})
        ---
        while {x}.abs().max() > 1e4:
            {x} = {x} * 0.5
        ---
        if not torch.isfinite({x}).all() and {x}.shape[0] > 0:
            {x} = torch.zeros_like({x})
        ---
        {x} = {x} * 0.5 if {x}.std() > 10.0 else {x}
        """,
        """
        if {x}.shape[0] > 1 and {x}.dim() == 3:
            {x} = {x} * 1.0
        ---
        if {x} is not None and {x}.numel():
            {x} = {x} * 1.0
        ---
        if {x}.dtype == torch.float16:
            {x} = {x}.clamp(max=6e4)
        ---
        if torch.is_tensor({x}) and {x}.is_cuda:
            {x} = {x} * 1.0
        ---
        {x} = torch.where(torch.isnan({x}), torch.zeros_like({x}), {x})
        """,
    ),
    _faults(
        "AWP103",
        "layer",
        """
        total_{u} = 0
        for value_{u} in {x}.flatten(1).mean(dim=-1):
            if value_{u} > 0:
                total_{u} += 1
        {x} = {x} * (1.0 + 1e-9 * total_{u})
        ---
        if any(value > 0 for value in {x}.flatten(1).mean(dim=-1)):
            {x} = {x} * 1.0
        ---
        top_{u} = max({x}.flatten())
        {x} = {x} / (1.0 + 1e-6 * top_{u})
        ---
        order_{u} = sorted({x}.flatten(1).mean(dim=-1))
        self.order = order_{u}
        ---
        if any({x}.flatten() > 1e4):
            {x} = {x}.clamp(max=1e4)
        """,
        """
        first_{u}, second_{u} = {x}.unsqueeze(0).expand(2, *{x}.shape)
        {x} = (first_{u} + second_{u}) / 2
        ---
        size_{u} = 1
        for length_{u} in {x}.shape:
            size_{u} *= length_{u}
        {x} = {x} * float(size_{u} > 0)
        ---
        longest_{u} = max({x}.shape)
        {x} = {x} * float(longest_{u} > 0)
        ---
        if any(length > 0 for length in {x}.shape[1:]):
            {x} = {x} * 1.0
        ---
        parts_{u} = sorted({x}.shape, reverse=True)
        {x} = {x} * float(parts_{u}[0] > 0)
        """,
        ("AWP102",),  # a loop that asks for the truth of each element
    ),
    _faults(
        "AWP104",
        "layer",
        """
        longest_{u} = {x}.argmax(dim=-1).max()
        {x} = {x}[..., : longest_{u} + 1]
        ---
        steps_{u} = torch.arange(({x} > 0).sum(), device={x}.device)
        {x} = {x} + 0.0 * steps_{u}.sum()
        ---
        for index_{u} in range({x}.argmax()):
            {x} = {x} + index_{u}
        ---
        spare_{u} = {x}.new_zeros({x}.argmax(dim=-1).max())
        {x} = {x} + spare_{u}.sum()
        ---
        pad_{u} = torch.zeros(({x} > 0).sum(), device={x}.device)
        {x} = {x} + pad_{u}.sum()
        """,
        """
        longest_{u} = {x}.shape[-1]
        {x} = {x}[..., :longest_{u}]
        ---
        steps_{u} = torch.arange({x}.shape[0], device={x}.device)
        {x} = {x} + 0.0 * steps_{u}.sum()
        ---
        for index_{u} in range({x}.dim()):
            {x} = {x} + index_{u}
        ---
        spare_{u} = {x}.new_zeros({x}.size(-1))
        {x} = {x} + spare_{u}
        ---
        half_{u} = {x}.shape[-1] // 2
        {x} = torch.cat((-{x}[..., half_{u}:], {x}[..., :half_{u}]), dim=-1)
        """,
    ),
    _faults(
        "AWP105",
        "layer",
        """
        kept_{u} = {x}[{x} > 0]
        {x} = {x} - kept_{u}.mean()
        ---
        where_{u} = ({x} > 0).nonzero()
        self.where = where_{u}
        ---
        rows_{u} = torch.where({x} > 0)
        self.rows = rows_{u}
        ---
        kept_{u} = torch.masked_select({x}, {x} > 0)
        {x} = {x} - kept_{u}.mean()
        ---
        seen_{u} = torch.unique({x}.round())
        self.seen = seen_{u}
        ---
        mask_{u} = {x} > 0
        fixed_{u} = {x}.clone()
        fixed_{u}[mask_{u}] = {x}[mask_{u}] * 0.5
        {x} = fixed_{u}
        """,
        """
        fixed_{u} = {x} * 1.0
        fixed_{u}[fixed_{u} < 0] = 0.0
        {x} = fixed_{u}
        ---
        {x} = torch.where({x} > 0, {x}, torch.zeros_like({x}))
        ---
        {x} = {x}.masked_fill({x} > 1e4, 1e4)
        ---
        even_{u} = {x}[..., ::2]
        {x} = {x} + 0.0 * even_{u}.mean()
        ---
        order_{u} = {x}.argsort(dim=-1)
        {x} = {x}.gather(-1, order_{u})
        ---
        mask_{u} = {x} > 0
        {x} = {x} * mask_{u}
        """,
    ),
    _faults(
        "AWP106",
        "layer",
        """
        torch.cuda.synchronize()
        ---
        torch.cuda.synchronize({x}.device)
        ---
        torch.cuda.current_stream().synchronize()
        ---
        event_{u} = torch.cuda.Event()
        event_{u}.record()
        event_{u}.synchronize()
        """,
        """
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        ---
        event_{u} = torch.cuda.Event()
        event_{u}.record()
        torch.cuda.current_stream().wait_event(event_{u})
        ---
        if self.training:
            torch.cuda.synchronize()
        ---
        device_{u} = torch.cuda.current_device()
        {x} = {x} * float(device_{u} >= 0)
        """,
    ),
    _faults(
        "AWP107",
        "layer",
        """
        print("mean", {x}.mean())
        ---
        _log.debug(f"values {{{x}.abs().max()}}")
        ---
        _log.info("spread %s", {x}.std())
        ---
        note_{u} = "largest: {{}}".format({x}.max())
        self.note = note_{u}
        ---
        print(f"{{{x}}}")
        """,
        """
        print("shape", {x}.shape)
        ---
        _log.debug(f"type {{{x}.dtype}} of {{tuple({x}.shape)}}")
        ---
        _log.info("rows %d", {x}.shape[0])
        ---
        note_{u} = "rows: {{}}".format({x}.size(0))
        self.note = note_{u}
        ---
        if self.training:
            print("mean", {x}.mean())
        """,
    ),
    _faults(
        "AWP108",
        "layer",
        """
        peak_{u} = {x}.abs().max()
        for part_{u} in {x}.unbind(0):
            {x} = {x} + part_{u}.mean() * (1e-6 * peak_{u}.item())
        ---
        count_{u} = ({x} > 0).sum()
        sum_{u} = {x} * 0
        for part_{u} in {x}.split(2, dim=0):
            sum_{u} = sum_{u} + part_{u}.mean() / (1.0 + float(count_{u}))
        {x} = sum_{u}
        ---
        widest_{u} = {x}.argmax(dim=-1).max()
        for part_{u} in {x}.chunk(2, dim=-1):
            {x} = {x} + part_{u}.mean() * int(widest_{u})
        """,
        """
        width_{u} = {x}.shape[-1]
        for part_{u} in {x}.split(2, dim=0):
            {x} = {x} + part_{u}.mean() * (1e-9 * float(width_{u}))
        ---
        scale_{u} = 0.5
        for part_{u} in {x}.chunk(2, dim=-1):
            {x} = {x} + part_{u}.mean() * float(scale_{u} + 0.5)
        ---
        peak_{u} = {x}.abs().max()
        for part_{u} in {x}.chunk(2, dim=-1):
            {x} = {x} + part_{u}.mean() / (1.0 + 1e-6 * peak_{u})
        """,
    ),
    _faults(
        "AWP109",
        "class",
        """
        @torch.no_grad()
        def generate_greedy_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int, eos_token_id: int):
            done = torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
            cache = None
            for _ in range(max_new_tokens):
                out = self(input_ids[:, -1:], past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                token = out.logits[:, -1].argmax(-1)
                input_ids = torch.cat([input_ids, token[:, None]], dim=1)
                done = done | (token == eos_token_id)
                if done.all():
                    break
            return input_ids
        ---
        @torch.inference_mode()
        def generate_sample_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int, eos_token_id: int):
            unfinished = input_ids.new_ones(input_ids.shape[0])
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                step = torch.multinomial(out.logits[:, -1].softmax(-1), 1)
                unfinished = unfinished * (step[:, 0] != eos_token_id).long()
                if unfinished.max() == 0:
                    break
            return step
        """,
        """
        @torch.no_grad()
        def generate_greedy_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int, eos_token_id: int):
            cache, step, tokens = None, input_ids, []
            for index in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                step = out.logits[:, -1].argmax(-1, keepdim=True)
                tokens.append(step)
                if index % 16 == 15 and (torch.cat(tokens[-16:], dim=1) == eos_token_id).any(dim=1).all():
                    break
            return tokens
        ---
        @torch.no_grad()
        def generate_fixed_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            cache, step, tokens = None, input_ids, []
            while len(tokens) < max_new_tokens:
                out = self(step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                step = out.logits[:, -1].argmax(-1, keepdim=True)
                tokens.append(step)
            return tokens
        """,
    ),
    _faults(
        "AWP110",
        "layer",
        """
        same_{u} = torch.equal({x}, {x}.round())
        {x} = {x} * (1.0 if same_{u} else 0.5)
        ---
        near_{u} = torch.allclose({x}, {x}.round())
        {x} = {x} * (1.0 if near_{u} else 0.5)
        ---
        counts_{u} = torch.bincount({x}.argmax(dim=-1).flatten())
        self.counts = counts_{u}
        ---
        chosen_{u} = F.one_hot({x}.argmax(dim=-1))
        {x} = {x} + 0.0 * chosen_{u}.sum()
        ---
        spread_{u} = torch.histc({x}.float(), bins=8)
        self.spread = spread_{u}
        """,
        """
        same_{u} = torch.eq({x}, {x}.round())
        {x} = {x} * same_{u}
        ---
        near_{u} = torch.isclose({x}, {x}.round())
        {x} = {x} * near_{u}
        ---
        chosen_{u} = F.one_hot({x}.argmax(dim=-1), num_classes={x}.shape[-1])
        {x} = {x} * chosen_{u}
        ---
        same_{u} = {x}.shape == self.training
        {x} = {x} * (1.0 if same_{u} else 1.0)
        ---
        counts_{u} = {x}.new_zeros({x}.shape[-1]).scatter_add_(0, {x}.argmax(dim=-1).flatten(), {x}[..., 0].flatten())
        {x} = {x} + counts_{u}
        """,
    ),
    _faults(
        "AWP111",
        "class",
        """
        @torch.inference_mode()
        def generate_sample_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                probs = torch.softmax(out.logits[:, -1].float(), dim=-1).cpu().numpy()
                picked = np.random.choice(probs.shape[-1], p=probs[0])
                step = torch.full((1, 1), int(picked), device=input_ids.device)
            return step
        ---
        @torch.no_grad()
        def generate_topk_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int, k: int = 50):
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                logits = out.logits[:, -1].cpu()
                values, indices = logits.topk(k, dim=-1)
                step = indices.gather(-1, torch.multinomial(values.softmax(-1), 1)).to(input_ids.device)
            return step
        """,
        """
        @torch.inference_mode()
        def generate_sample_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int):
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                step = torch.multinomial(torch.softmax(out.logits[:, -1].float(), dim=-1), 1)
            return step
        ---
        @torch.no_grad()
        def generate_topk_{u}(self, input_ids: torch.LongTensor, max_new_tokens: int, k: int = 50):
            cache, step = None, input_ids
            for _ in range(max_new_tokens):
                out = self(step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                values, indices = out.logits[:, -1].topk(k, dim=-1)
                step = indices.gather(-1, torch.multinomial(values.softmax(-1), 1))
            return step
        """,
    ),
)

ATTENTION = (
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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

MEMORY = (
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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
    _faults(
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

ALL = (*SYNC, *ATTENTION, *MEMORY)
