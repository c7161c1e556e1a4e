"""An agent of the Agent Client Protocol, for tests: the standard library and nothing else.

    python3 agent.py MODE

- ``work``: runs the commands that the model calls for in terminals of its client, with permission,
  and ends its turn with the model's text. It copies the file that the tool ``copy`` names.
- ``deaf``: the same, but does not hear that its turn is cancelled.
- ``say TEXT``: ends its turn with a text.
- ``wait``: never ends its turn, unless it is cancelled.
- ``unread``: asks for files, and then for answers of the model, and reads nothing of its client.
- ``ask COMMAND``: asks for a permission and a terminal, and says what it is told.
- ``details``: says what its client answers to requests at the edges of the protocol.
- ``quit``: ends when it gets the prompt; ``leave``, too, and a process keeps its output open.
- ``refuse``: gives an error for the prompt; with any word, one of no known form.
- ``babble``: writes lines that are no messages, and updates of no known form, around its text.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import traceback
import urllib.request
from contextlib import suppress
from queue import SimpleQueue

MODE, *REST = sys.argv[1:]
SESSION = "the-session"
numbers, replies, output = itertools.count(), {}, threading.Lock()


def send(**message):
    with output:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def request(method, **params):
    number = next(numbers)
    replies[number] = mine = SimpleQueue()
    send(id=number, method=method, params={"sessionId": SESSION, **params})
    return mine


def ask_client(method, **params):
    reply = request(method, **params).get()
    if "error" in reply:
        raise RuntimeError(reply["error"]["message"])
    return reply["result"]


def update(name, /, **fields):
    params = {"sessionId": SESSION, "update": {"sessionUpdate": name, **fields}}
    send(method="session/update", params=params)


def say(text):
    for part in (text[:5], text[5:]):
        update("agent_message_chunk", content={"type": "text", "text": part})


def ask_model(messages):
    properties = {"command": {"type": "string"}}
    function = {"name": "run", "parameters": {"type": "object", "properties": properties}}
    tools = [{"type": "function", "function": function}]
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": "any", "messages": messages, "tools": tools}).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


def run(command):
    asked = ask_client("terminal/create", command="bash", args=["-c", command])
    terminal = {"terminalId": asked["terminalId"]}
    code = ask_client("terminal/wait_for_exit", **terminal)["exitCode"]
    text = ask_client("terminal/output", **terminal)["output"]
    ask_client("terminal/release", **terminal)
    return text, "completed" if code == 0 else "failed"


def copy(path):
    content = ask_client("fs/read_text_file", path=path, line=1, limit=1)["content"]
    ask_client("fs/write_text_file", path=f"{path}.copy", content=content)
    return content, "completed"


def ask_permission(shown):
    options = [
        {"optionId": "z", "name": "Always", "kind": "allow_always"},
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No", "kind": "reject_once"},
    ]
    answer = ask_client("session/request_permission", toolCall=shown, options=options)
    return answer["outcome"].get("optionId")


def act(call):
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    shown = {"toolCallId": call["id"], "title": name, "rawInput": arguments}
    update("tool_call", status="pending", kind="execute", **shown)
    text, status = "refused", "failed"
    if ask_permission(shown) == "y":
        text, status = (copy if name == "copy" else run)(*arguments.values())
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    update("tool_call_update", toolCallId=call["id"], status=status, content=content)
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def work(prompt):
    messages = [{"role": "user", "content": prompt}]
    while True:
        messages.append(ask_model(messages))
        if messages[-1]["content"]:
            say(messages[-1]["content"])
        calls = messages[-1].get("tool_calls") or []
        if not calls:
            return
        messages.extend(map(act, calls))


def ask(command):
    option = ask_permission({"toolCallId": "c", "title": "run", "rawInput": {"command": command}})
    try:
        run(command)
    except RuntimeError as e:
        say(f"{option}: {e}")


def details():
    path = "/dev/shm/lines"
    ask_client("fs/write_text_file", path=path, content="a\fb\nc\n")
    line = ask_client("fs/read_text_file", path=path, line=1, limit=1)["content"]
    made = ask_client("terminal/create", command="echo out", outputByteLimit=0)
    echo = {"terminalId": made["terminalId"]}
    ask_client("terminal/wait_for_exit", **echo)
    output = ask_client("terminal/output", **echo)
    sleep = {"terminalId": ask_client("terminal/create", command="sleep 1000")["terminalId"]}
    waits = request("terminal/wait_for_exit", **sleep)
    ask_client("terminal/release", **sleep)
    ended = waits.get()["result"]
    say(json.dumps([line, output["output"], output["truncated"], ended.get("signal")]))


def read_nothing():
    with open("/dev/shm/big", "w") as f:
        f.write("x" * (1 << 20))
    for number in range(100):
        send(id=number, method="fs/read_text_file", params={"sessionId": SESSION, "path": f.name})
    with suppress(OSError):
        while True:
            ask_model([{"role": "user", "content": "go on"}])
    threading.Event().wait()


def answer(number, prompt):
    try:
        turn(number, prompt)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def turn(number, prompt):
    if MODE == "leave":
        subprocess.Popen(["sleep", "1000"])
    if MODE in ("quit", "leave"):
        os._exit(7)
    if MODE == "refuse":
        error = {"code": -32603, "message": "no prompt suits me"}
        send(id=number, error=error["message"] if REST else error)
    if MODE == "unread":
        read_nothing()
    if MODE == "details":
        details()
    if MODE == "ask":
        ask(REST[0])
    if MODE == "babble":
        print("this is no message", flush=True)
        say("this is another message")
        update("of_no_known_kind", whatever=[1])
        update("tool_call", title=7, rawInput=[])
        send(method="session/update", params=[1])
        for odd in ({"terminalId": "none"}, {"terminalId": [1]}, {}):
            with suppress(RuntimeError):
                ask_client("terminal/output", **odd)
    if MODE in ("work", "deaf"):
        work(prompt)
    if MODE in ("say", "babble"):
        say(REST[0])
    if MODE not in ("wait", "refuse"):
        send(id=number, result={"stopReason": "end_turn"})


def main():
    prompted = None
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method is None:
            replies.pop(number).put(message)
        elif method == "initialize":
            info = {"name": "test-agent", "version": "1.0"}
            send(id=number, result={"protocolVersion": 1, "agentInfo": info})
        elif method == "session/new":
            send(id=number, result={"sessionId": SESSION})
        elif method == "session/prompt":
            prompted = number
            text = message["params"]["prompt"][0]["text"]
            threading.Thread(target=answer, args=(number, text), daemon=True).start()
            if MODE == "unread":
                threading.Event().wait()
        elif method == "session/cancel" and MODE != "deaf":
            send(id=prompted, result={"stopReason": "cancelled"})


main()
