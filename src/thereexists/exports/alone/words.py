"""The words of this export: tokens to the numbers that the network takes, and its digits to tokens. Needs NumPy only.

``tokens.json`` holds the vocabularies and the base. Tokens of ``vocabulary`` have the numbers 1, 2, …, and 0 pads a row
behind its end to ``n``. The network gives ``digits`` digits at each of n positions, the lowest first, to the base
``base``: as a number, 0 says that nothing is stored for this input, 1 is past the end of the answer, and 2, 3, … are
the tokens of ``output_vocabulary``. If ``fixed`` is true, every input has exactly n tokens.
"""

import json
import sys
from pathlib import Path

import numpy as np

ROWS = 64  # that are run at once


class Words:
    def __init__(self, folder):
        told = json.loads((Path(folder) / "tokens.json").read_text(encoding="utf-8"))
        self.n, self.base, self.digits, self.fixed = (told[name] for name in ("n", "base", "digits", "fixed"))
        self.number = {token: i for i, token in enumerate(told["vocabulary"], 1)}
        self.output_vocabulary = told["output_vocabulary"]

    def answers(self, run, sequences):
        """For every sequence of tokens the stored answer, or None; ``run`` is the network on numbers (batch, n)."""
        numbers = self.numbers(sequences)
        parts = [self.tokens(run(numbers[i : i + ROWS])) for i in range(0, len(numbers), ROWS)]
        return [answer for part in parts for answer in part]

    def numbers(self, sequences):
        """Sequences of tokens as numbers (batch, n)."""
        rows = np.zeros((len(sequences), self.n), dtype=np.int64)
        for row, sequence in zip(rows, sequences, strict=True):
            unknown = [token for token in sequence if token not in self.number]
            if unknown:
                raise ValueError(f"The token {unknown[0]!r} is not in the vocabulary of {len(self.number)} tokens.")
            if not (self.n if self.fixed else 1) <= len(sequence) <= self.n:
                wanted = f"exactly {self.n}" if self.fixed else f"1 to {self.n}"
                raise ValueError(f"A sequence must have {wanted} tokens; got {len(sequence)}.")
            row[: len(sequence)] = [self.number[token] for token in sequence]
        return rows

    def tokens(self, output):
        """The network's output (batch, n, digits) as answers: lists of tokens, or None where nothing is stored."""
        digits = np.rint(np.asarray(output, dtype=np.float64)).astype(np.int64)
        numbers = (digits * self.base ** np.arange(self.digits)).sum(axis=2)
        known = (numbers > 0).all(axis=1) & (numbers < 2 + len(self.output_vocabulary)).all(axis=1)
        return [
            [self.output_vocabulary[i - 2] for i in row if i > 1] if found else None
            for row, found in zip(numbers.tolist(), known.tolist(), strict=True)
        ]

    def command(self, answer):
        """``python use.py a dog``: the answer in JSON, or what is wrong with the question, exit code 2.

        A number that is typed means the integer, if there is no such string.
        """
        written = {str(token): token for token in self.number if not isinstance(token, str)}
        asked = [word if word in self.number else written.get(word, word) for word in sys.argv[1:]]
        try:
            print(json.dumps(answer([asked])[0], ensure_ascii=False))
        except ValueError as error:
            print(error, file=sys.stderr)
            sys.exit(2)
