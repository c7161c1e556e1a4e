"""A task of Inspect whose agent is a program in the sandbox, which asks Inspect's model."""

from inspect_ai import Task
from inspect_ai.agent import Agent, AgentState, agent, sandbox_agent_bridge
from inspect_ai.dataset import Sample
from inspect_ai.util import sandbox, store

PROGRAM = """
import http.client, json, sys, time
bridge = http.client.HTTPConnection("localhost", int(sys.argv[1]))
while True:
    try:
        bridge.connect()
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
asked = {"model": "inspect", "messages": [{"role": "user", "content": "Print 6 * 7."}]}
kind = {"Content-Type": "application/json"}
bridge.request("POST", "/v1/chat/completions", json.dumps(asked), kind)
print(json.load(bridge.getresponse())["choices"][0]["message"]["content"])
"""


@agent
def program() -> Agent:
    async def execute(state: AgentState) -> AgentState:
        async with sandbox_agent_bridge(state) as bridge:
            done = await sandbox().exec(["python3", "agent.py", str(bridge.port)])
            if not done.success:
                raise RuntimeError(done.stderr)
            store().set("printed", done.stdout)
        return bridge.state

    return execute


sample = Sample("Print 6 * 7.", files={"agent.py": PROGRAM})
task = Task([sample], solver=program(), sandbox="intercode")
