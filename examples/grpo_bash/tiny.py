"""A language model of a hundred words with its tokenizer and template, made from scratch."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEMPLATE = """
{%- for m in messages %}{% if m.role == 'assistant' %}[bot]
{%- for c in m.tool_calls or [] %} call {{ c.function.name }}
{%- for k, v in c.function.arguments.items() %} {{ k }} {{ v }}{% endfor %}{% endfor %}
{{- ' ' + m.content }} [end] {% else %}[{{ m.role }}] {{ m.content }} {% endif %}{% endfor %}
{%- if add_generation_prompt %}[bot]{% endif %}"""
CALL = {"type": "function", "function": {"name": "bash", "arguments": {"command": "{content}"}}}
MARKS = ["[pad]", "[unk]", "[end]", "[bot]", "[user]", "[tool]", "call", "bash", "command", "done"]

RIGHT = 0.3
TRAINING = {
    "use_cpu": True,
    "bf16": False,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "num_iterations": 2,
    "max_completion_length": 40,
    "max_tool_calling_iterations": 1,
    "seed": 1,
}


def make(
    shown: Sequence[tuple[str, str]], steps: int = 300, seed: int = 1
) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """Return the model and its tokenizer after a warm start on requests with their commands.

    In the warm start the model imitates calls of which three in ten have the right program. It
    learns the rest from rewards.
    """
    torch.manual_seed(seed)
    tokenizer = _tokenizer(text for pair in shown for text in pair)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            head_dim=16,
            max_position_embeddings=256,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    draw, optimizer = random.Random(seed), torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        texts = [_clumsy(*draw.choice(shown), draw.choice(shown)[1], draw) for _ in range(32)]
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        model(**batch, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, tokenizer


def _clumsy(query: str, right: str, other: str, draw: random.Random) -> str:
    """Return a conversation with the right command, or with another program on the same file."""
    file = right.rpartition(" ")[2]
    command = right if draw.random() < RIGHT else f"{other.rpartition(' ')[0]} {file}"
    output = " ".join(["[unk]"] * draw.randrange(12))
    call = f"[user] {query} [bot] call bash command {command} [end]"
    return f"{call} [tool] {output} [bot] done [end]"


def _tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    words = dict.fromkeys(MARKS + " ".join(texts).split())
    plain = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[unk]"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token="[pad]",
        unk_token="[unk]",
        eos_token="[end]",
        chat_template=TEMPLATE,
    )
    tokenizer.response_template = {
        "defaults": {"role": "assistant"},
        "start_anchor": "[bot]",
        "fields": {
            "tool_calls": {
                "open": "call bash command",
                "close": "[end]",
                "content": "text",
                "repeats": True,
                "transform": CALL,
            },
            "content": {"close": "[end]", "content": "text"},
        },
    }
    return tokenizer
