"""Faults and look-alikes of the rules 3xx: fusion and redundant work."""

from __future__ import annotations

from faults.table import faults

FUSION = (
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
