"""Evaluates a function of Python on the starter's Bash tasks: it takes messages, returns a text.

python examples/evaluate_function.py
"""

from __future__ import annotations

import intercode


def list_files(messages: list[dict[str, str]]) -> str:
    """Look around, then submit. Ask your own model here, with ``messages`` as chat models get
    them."""
    first_turn = not any(message["role"] == "assistant" for message in messages)
    return f"```bash\n{'ls -la' if first_turn else 'submit'}\n```"


def main() -> None:
    """Play four tasks, print the results, and show the first action of each episode."""
    run = intercode.evaluate("starter:bash", "try-again", model=list_files, limit=4)
    print(run)
    for episode in run.episodes:
        print(episode.task, episode.steps[0].action, episode.score)
    # run.to_pandas() is a table of the episodes: pip install 'intercode-gym[data]'


if __name__ == "__main__":
    main()
