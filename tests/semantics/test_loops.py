"""What loops go over."""

from __future__ import annotations

import ast

import pytest

from awp_lint.detector.semantics.loops import loop_kind
from awp_lint.detector.semantics.view import LoopKind


def kind(header: str, body: str = "pass") -> LoopKind:
    loop = ast.parse(f"{header}\n    {body}").body[0]
    assert isinstance(loop, (ast.For, ast.While))
    return loop_kind(loop)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("for layer in self.layers:", LoopKind.LAYERS),
        ("for i, block in enumerate(self.transformer_blocks):", LoopKind.LAYERS),
        ("for decoder_layer in self.layers[: self.config.num_hidden_layers]:", LoopKind.LAYERS),
        ("for resnet, attn in zip(self.resnets, self.attentions):", LoopKind.LAYERS),
        ("for box, layer_idx in zip(boxes, layer_idxs):", LoopKind.UNKNOWN),
        ("for layer_idx, weights in zip(numbers, tensors):", LoopKind.LAYERS),
        ("for i in range(len(self.layers)):", LoopKind.LAYERS),
        ("for layer in islice(self.layers, self.start_layer, self.end_layer):", LoopKind.LAYERS),
        ("for i, t in enumerate(timesteps):", LoopKind.STEPS),
        ("for t in self.progress_bar(self.scheduler.timesteps):", LoopKind.STEPS),
        ("for step in range(num_inference_steps):", LoopKind.STEPS),
        ("for step in reversed(range(1, config.max_denoising_steps + 1)):", LoopKind.STEPS),
        ("for _ in range(max_new_tokens):", LoopKind.TOKENS),
        ("for pos in tqdm(range(args.max_new_tokens)):", LoopKind.TOKENS),
        ("for b in range(batch_size):", LoopKind.BATCH),
        ("for i in range(x.shape[0]):", LoopKind.BATCH),
        ("for i in range(x.size(1)):", LoopKind.ELEMENTS),
        ("for image in images:", LoopKind.BATCH),
        ("for expert_idx in expert_hit:", LoopKind.EXPERTS),
        ("for expert in range(self.num_experts):", LoopKind.EXPERTS),
        ("for prompt in prompts:", LoopKind.REQUESTS),
        ("for name in tqdm(classnames):", LoopKind.REQUESTS),
        ("for time_idx in range(max_out_len):", LoopKind.TOKENS),
        ("for batch in dataloader:", LoopKind.REQUESTS),
        ("for epoch in range(args.num_epochs):", LoopKind.EPOCHS),
        ("for path in glob.glob(pattern):", LoopKind.FILES),
        ("for attempt in range(retries):", LoopKind.RETRIES),
        ("for i in range(3):", LoopKind.FIXED),
        ("for name in ('q', 'k', 'v'):", LoopKind.FIXED),
        ("for key, value in kwargs.items():", LoopKind.UNKNOWN),
        ("while self._has_unfinished_sequences(done, device=device):", LoopKind.TOKENS),
        ("while cur_len < max_length:", LoopKind.TOKENS),
        ("while engine.has_unfinished_requests():", LoopKind.STEPS),
        ("while not request_queue.empty():", LoopKind.REQUESTS),
        ("while low < high:", LoopKind.UNKNOWN),
        ("for batch in batched(rows, self.size):", LoopKind.REQUESTS),
        ("for text in texts:", LoopKind.REQUESTS),
        ("for row in range(len(texts)):", LoopKind.BATCH),
        ("for row, text in enumerate(texts):", LoopKind.REQUESTS),
    ],
)
def test_headers(header: str, expected: LoopKind) -> None:
    assert kind(header) is expected


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("for i in range(n):", "ids = torch.cat([ids, model(ids)[:, -1].argmax(-1)])", LoopKind.TOKENS),
        ("for i in range(n):", "best = scores.argmax(-1)", LoopKind.UNKNOWN),
        ("while True:", "item = self.queue.get()", LoopKind.REQUESTS),
        ("while True:", "line = input('> ')", LoopKind.REQUESTS),
        ("while True:", "self.engine.step()", LoopKind.STEPS),
        ("while True:", "batch = self.get_next_batch_to_run()", LoopKind.STEPS),
        ("while True:", "run_batches()", LoopKind.UNKNOWN),
        ("while True:", "mel, gate, frame = self.decoder(memory, frame)", LoopKind.STEPS),
        ("while True:", "mel, gate = self.decoder(memory, frame)", LoopKind.UNKNOWN),
        ("while True:", "x = settings.get('x')", LoopKind.UNKNOWN),
        ("for part in parts:", "scores = self.model(part[None])[0]", LoopKind.BATCH),
        ("for part in parts:", "scores = net(part[None])[0]", LoopKind.REQUESTS),
        ("for part in parts:", "scores = self.bank(part[None])[0]", LoopKind.UNKNOWN),
        ("for _ in range(k):", "p = self.draft(tokens); tokens = torch.cat((tokens, pick(p)), dim=1)", LoopKind.TOKENS),
        ("for part in parts:", "tokens = torch.cat((tokens, part), dim=1)", LoopKind.UNKNOWN),
        ("for part in parts:", "p = self.draft(row); row = torch.cat((row, pick(p)), dim=1)", LoopKind.UNKNOWN),
        ("for t in timesteps:", "x = unet(x, t)", LoopKind.STEPS),
        ("for t in timesteps:", "steps.append((table == t).nonzero()[0].item())", LoopKind.UNKNOWN),
        ("for block in range(num_blocks):", "x = self.layers[block](x)", LoopKind.LAYERS),
        ("for block in range(num_blocks):", "while more:\n        x = self.model(x)", LoopKind.UNKNOWN),
        ("for i in range(max_new_canvases):", "for t in timesteps: x = self.model(x, t)", LoopKind.FIXED),
        ("for i in range(n):", "with bar:\n        for t in timesteps: x = self.model(x, t)", LoopKind.FIXED),
        ("for image in images:", "for t in timesteps: x = self.model(x, t)", LoopKind.BATCH),
        ("for t in timestep:", "steps.append((table == t).nonzero()[0].item())", LoopKind.UNKNOWN),
        ("while more:", "x = self.model(x)", LoopKind.STEPS),
        ("while more:", "x = self.table(x)", LoopKind.UNKNOWN),
        ("while n < k:", "p = self.ask(ids); ids = torch.cat((p[:, :n], last), dim=1); n = 1", LoopKind.TOKENS),
        (
            "for _ in range(n):",
            "s = self.model.decode(y, m); y = torch.cat((y, s[:, -1].argmax(-1, keepdim=True)), dim=1)",
            LoopKind.TOKENS,
        ),
    ],
)
def test_bodies(header: str, body: str, expected: LoopKind) -> None:
    assert kind(header, body) is expected


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("for row, text in enumerate(texts):", "use(scores[row], text)", LoopKind.BATCH),
        ("for row, text in enumerate(texts):", "use(scores[row, places], text)", LoopKind.BATCH),
        ("for row, text in enumerate(texts):", "scores[row] = use(text)", LoopKind.REQUESTS),
        ("for row, text in enumerate(texts):", "use(scores[:, row], text)", LoopKind.REQUESTS),
        ("for turn, text in enumerate(texts):", "use(scores[turn], text)", LoopKind.REQUESTS),
    ],
)
def test_a_number_that_says_which_row_is_meant_counts_rows(header: str, body: str, expected: LoopKind) -> None:
    assert kind(header, body) is expected
