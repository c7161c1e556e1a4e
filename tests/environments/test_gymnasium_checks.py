"""What Gymnasium's own tests ask of every registered environment, with its public functions.

They are in ``tests/envs/test_envs.py`` of its repository; its source distribution lacks that file.
"""

from __future__ import annotations

import pickle
import warnings

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.wrappers import FlattenObservation

import intercode  # noqa: F401 - registers the environments
from intercode.core.errors import UsageError

pytestmark = [pytest.mark.sandbox, pytest.mark.heavy]
SPECS = [spec for name, spec in gym.registry.items() if name.startswith("intercode/")]
SEED = 0


@pytest.fixture(params=SPECS, ids=[spec.id for spec in SPECS])
def spec(request: pytest.FixtureRequest) -> gym.envs.registration.EnvSpec:
    return request.param  # type: ignore[no-any-return]


def test_all_five_are_registered() -> None:
    assert len(SPECS) == 5


def test_the_checker_has_no_warning(spec: gym.envs.registration.EnvSpec) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = spec.make(disable_env_checker=True).unwrapped
        check_env(env)
        env.close()


def test_equal_seeds_give_equal_rollouts(spec: gym.envs.registration.EnvSpec) -> None:
    one, two = (spec.make(disable_env_checker=True) for _ in range(2))
    assert data_equivalence(one.reset(seed=SEED), two.reset(seed=SEED))
    one.action_space.seed(SEED)
    for _ in range(3):
        action = one.action_space.sample()
        results = one.step(action), two.step(action)
        assert data_equivalence(*results) and one.observation_space.contains(results[0][0])
    one.close()
    two.close()


def test_every_render_mode_renders(spec: gym.envs.registration.EnvSpec) -> None:
    for mode in spec.make().metadata["render_modes"]:
        env = spec.make(render_mode=mode)
        query, _ = env.reset()
        assert env.render() == query
        env.step("echo rendered")
        assert "echo rendered" in str(env.render())
        env.close()


def test_a_pickle_continues_with_the_same_random_numbers(
    spec: gym.envs.registration.EnvSpec,
) -> None:
    """Before ``reset``, and after an episode."""
    env = spec.make(max_turns=7)
    fresh = pickle.loads(pickle.dumps(env))
    assert data_equivalence(env.reset(seed=SEED), fresh.reset(seed=SEED))
    assert fresh.spec == env.spec and fresh.unwrapped.max_turns == 7
    action = env.action_space.sample()
    assert data_equivalence(env.step(action), fresh.step(action))
    env.close()
    later = pickle.loads(pickle.dumps(env))
    assert data_equivalence(env.reset(), later.reset())
    assert env.action_space.sample() == later.action_space.sample()
    for each in (env, fresh, later):
        each.close()


def test_a_pickle_within_an_episode_continues_it(spec: gym.envs.registration.EnvSpec) -> None:
    action, look = {
        "Bash": (
            "number=41; rm /etc/issue; echo $number > /made",
            "ls /etc/issue; cat /made; echo $number",
        ),
        "CTF": ("number=41; echo $number > made", "cat made; echo $number"),
        "Python": ("number = 41", "print(number)"),
        "Code": ("class Main {}", "class Main { static int number = 41 }"),
        "SQL": ("CREATE TABLE made AS SELECT 41 AS number", "SELECT number FROM made"),
    }[spec.name]
    with spec.make(max_turns=7) as env:
        env.reset(seed=SEED)
        env.step(action)
        with pickle.loads(pickle.dumps(env)) as copied:
            result = env.step(look)
            assert data_equivalence(result, copied.step(look)) and "41" in result[0]
            assert data_equivalence(env.step("submit"), copied.step("submit"))


def test_flattened_observations_hold_any_character() -> None:
    env = FlattenObservation(gym.make("intercode/Bash-v1"))
    try:
        query, _ = env.reset(seed=SEED)
        observation = env.step("printf 'a/\n世😀'")[0]
        for flat in (query, observation):
            assert env.observation_space.contains(flat)
        space = env.unwrapped.observation_space
        assert gym.spaces.unflatten(space, observation) == "a/\n世😀"
    finally:
        env.close()


def test_asynchronous_vectors_say_what_to_pass_or_work() -> None:
    with pytest.raises(UsageError, match=r"vector_kwargs=\{'shared_memory': False\}"):
        gym.make_vec("intercode/Bash-v1", 2, vectorization_mode="async")
    envs = gym.make_vec(
        "intercode/Bash-v1", 2, vectorization_mode="async", vector_kwargs={"shared_memory": False}
    )
    try:
        envs.reset(seed=SEED)
        assert envs.step(["echo a/b", "echo c"])[0] == ("a/b\n", "c\n")
    finally:
        envs.close()
