"""Recordings in, transcripts out."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.nn.utils.rnn import pad_sequence

from transcriber.activity import longest, speech_segments
from transcriber.decoding import best, confidence, greedy, word_times
from transcriber.features import RATE, log_mel, normalise
from transcriber.model import SpeechModel


@dataclass
class Transcript:
    text: str = ""
    words: list[tuple[str, float]] = field(default_factory=list)
    confidence: list[float] = field(default_factory=list)


class Transcriber:
    def __init__(self, model: SpeechModel, device: torch.device, dtype: torch.dtype) -> None:
        self.model = model
        self.device = device
        self.dtype = dtype
        self.seconds = 0.0

    @torch.inference_mode()
    def transcribe(self, recording: torch.Tensor) -> Transcript:
        """Transcript of one recording, samples (samples,) on the host."""
        samples = recording.to(self.device)
        peak = samples.abs().max().item()
        if peak == 0.0:
            return Transcript()
        samples = samples / peak
        segments = speech_segments(samples, 0.5)
        if longest(segments) > 30 * RATE:
            raise ValueError("more than thirty seconds without a pause")
        transcript = Transcript()
        self.seconds += recording.shape[0] / RATE
        if not segments:
            return transcript
        frames = [normalise(log_mel(samples[segment.start : segment.end])).to(self.dtype) for segment in segments]
        counts = [len(part) for part in frames]
        letters, chances = best(
            self.model(pad_sequence(frames, batch_first=True), torch.tensor(counts).to(self.device))
        )
        rows = torch.stack((letters.float(), chances)).tolist()  # one read for all segments
        for number, segment in enumerate(segments):
            steps = (counts[number] + 1) // 2
            spelt = [int(letter) for letter in rows[0][number][:steps]]
            text = greedy(spelt)
            seconds = (segment.end - segment.start) / RATE
            transcript.text += text + " "
            transcript.words += word_times(text, segment.start / RATE, seconds)
            transcript.confidence.append(confidence(spelt, rows[1][number][:steps]))
        return transcript
