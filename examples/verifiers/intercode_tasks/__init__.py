from intercode_tasks.taskset import InterCodeEnv, InterCodeTaskset

__all__ = ["InterCodeEnv", "InterCodeTaskset"]
