"""The conversation with an agent of the Agent Client Protocol: one session and one prompt."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from acp import PROTOCOL_VERSION, Client, RequestError, text_block
from acp.client import ClientSideConnection
from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation
from pydantic import ValidationError

from intercode.core.version import __version__
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.evaluation.programs.acp_client import AcpClient, Pipes
from intercode.models.bridge import Bridge
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import BaseProcess, drain, drain_once

_CANCEL_SECONDS = 5.0
"""The time that an agent has to end a turn that is cancelled."""
_MAX_WORD, _MAX_TEXT = 200, 2000  # characters that are recorded of what an agent says of itself
_LOGIN_NEEDED = -32000
_ABLE = ClientCapabilities(
    fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
)


class AcpSession:
    """A session with an agent in the sandbox of an episode.

    ``variables``: those of the commands that it has its client run. ``login``: the id of the method
    by which it is logged in, if it asks for that. ``about`` is what is recorded of the session.
    """

    def __init__(
        self, env: SandboxedEnv, variables: Mapping[str, str], login: str | None = None
    ) -> None:
        self.client = AcpClient(env, variables)
        self.about: dict[str, Any] = {}
        self._cwd, self._login = env.working_directory, login
        self._session: str | None = None

    async def prompt(
        self,
        text: str,
        process: BaseProcess,
        streams: Mapping[int, int],
        output: Collector,
        bridge: Bridge,
        seconds_left: Callable[[], float],
    ) -> str:
        """Send a prompt, answer the agent's requests, and return why the agent ended its turn.

        ``process``: the agent. ``streams``: the other ends of its standard input, output and error.
        ``output`` takes what it writes to the last. Raises ConnectionError if the agent ends before
        or refuses something, and what ``Bridge.serve`` and ``seconds_left`` raise, after the turn
        is cancelled.
        """
        errors = streams[2]
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[None] = loop.create_future()
        os.set_blocking(errors, False)

        def serve_bridge() -> None:
            try:
                bridge.serve()
            except BaseException as e:  # of a limit, or of the run's end
                loop.remove_reader(bridge.fileno())
                stopped.set_exception(e)

        def read_errors() -> None:
            if not drain_once(errors, output):
                loop.remove_reader(errors)

        def end() -> None:
            loop.remove_reader(status)
            pipes.finish()

        loop.add_reader(bridge.fileno(), serve_bridge)
        loop.add_reader(errors, read_errors)
        pipes = await Pipes.open(self.client, streams[1], streams[0])
        status = process.fileno()
        loop.add_reader(status, end)
        connection = ClientSideConnection(cast(Client, self.client), pipes)
        turn = asyncio.create_task(self._talk(connection, text))
        try:
            while not turn.done():
                await asyncio.wait(
                    (turn, stopped), timeout=seconds_left(), return_when=asyncio.FIRST_COMPLETED
                )
                if stopped.done():
                    stopped.result()
            return turn.result()
        except RequestError as e:
            raise ConnectionError(f"{e} {e.data or ''}"[:_MAX_TEXT].rstrip()) from None
        except ValidationError as e:
            why = f"an answer does not keep to the protocol: {e}"
            raise ConnectionError(why[:_MAX_TEXT]) from None
        finally:
            loop.remove_reader(bridge.fileno())
            if not turn.done():
                await self._cancel(connection, turn)
            loop.remove_reader(errors)
            loop.remove_reader(status)
            drain(errors, output)
            self.client.close()
            await connection.close()

    async def _talk(self, connection: ClientSideConnection, text: str) -> str:
        agent = await connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=_ABLE,
            client_info=Implementation(name="intercode", version=__version__),
        )
        if agent.agent_info is not None:
            info = agent.agent_info
            self.about["agent"] = {
                "name": info.name[:_MAX_WORD],
                "version": info.version[:_MAX_WORD],
            }
        try:
            session = await connection.new_session(cwd=self._cwd, mcp_servers=[])
        except RequestError as e:
            if e.code != _LOGIN_NEEDED or self._login is None:
                raise
            await connection.authenticate(method_id=self._login)
            session = await connection.new_session(cwd=self._cwd, mcp_servers=[])
        self._session = session.session_id
        self.about["session"] = self._session[:_MAX_WORD]
        reply = await connection.prompt(session_id=self._session, prompt=[text_block(text)])
        self.about["stop_reason"] = reason = reply.stop_reason[:_MAX_WORD]
        return reason

    async def _cancel(self, connection: ClientSideConnection, turn: asyncio.Task[str]) -> None:
        """Cancel the turn, and wait a while for the agent to end it."""
        if self._session is not None:
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    await connection.cancel(session_id=self._session)
                    await asyncio.wait((turn,))
        turn.cancel()
        with suppress(asyncio.CancelledError, ConnectionError, RequestError, ValidationError):
            await turn
