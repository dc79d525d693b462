"""Byte-level tokenizer with a fixed set of syllables on top, and the streaming way back to text."""

from __future__ import annotations

import codecs
from itertools import product

_CONSONANTS = "tnsrlhdcmpgbfwkvyjxqz"
_VOWELS = "eaiou"
_LONGEST = 4


def _syllables(count: int) -> list[bytes]:
    """The first ``count`` syllables, short ones first: te, ta, ..., ten, tes, ..., tent, ..."""
    made: list[bytes] = []
    for shape in ((_CONSONANTS, _VOWELS), (_VOWELS, _CONSONANTS), (_CONSONANTS, _VOWELS, _CONSONANTS)):
        made += ["".join(letters).encode() for letters in product(*shape)]
    made += ["".join(letters).encode() for letters in product(_CONSONANTS, _VOWELS, _CONSONANTS, _CONSONANTS)]
    if len(made) < count:
        raise ValueError(f"no more than {len(made)} syllables")
    return made[:count]


class Tokenizer:
    """Ids 0-255 are bytes, then the special tokens, then syllables."""

    def __init__(self, vocab_size: int) -> None:
        self.pad_id, self.bos_id, self.eos_id, self.sep_id = 256, 257, 258, 259
        specials = [b""] * 4
        self.pieces = [bytes([value]) for value in range(256)] + specials + _syllables(vocab_size - 260)
        self._ids = {piece: index for index, piece in enumerate(self.pieces) if len(piece) > 1}

    def encode(self, text: str) -> list[int]:
        """Greedy longest match, left to right."""
        data = text.encode()
        ids: list[int] = []
        start = 0
        while start < len(data):
            for length in range(min(_LONGEST, len(data) - start), 1, -1):
                found = self._ids.get(data[start : start + length])
                if found is not None:
                    ids.append(found)
                    start += length
                    break
            else:
                ids.append(data[start])
                start += 1
        return ids

    def encode_pair(self, first: str, second: str, limit: int) -> list[int]:
        """Two texts with a separator, cut to ``limit`` tokens."""
        return [self.bos_id, *self.encode(first), self.sep_id, *self.encode(second)][:limit]

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.pieces[index] for index in ids).decode(errors="replace")


class StreamDecoder:
    """Turns one token after the other into text; a character cut in two waits for its rest."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._pieces = tokenizer.pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._decoder.decode(self._pieces[token])

    def finish(self) -> str:
        return self._decoder.decode(b"", final=True)
