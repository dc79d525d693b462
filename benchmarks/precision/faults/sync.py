"""Faults and look-alikes of the rules 1xx: waits for the device."""

from __future__ import annotations

from faults.table import faults

SYNC = (
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
    faults(
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
