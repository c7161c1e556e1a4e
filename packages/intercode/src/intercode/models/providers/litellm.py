"""Every other provider, through LiteLLM (the extra ``models``)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from intercode.models.base import Completion, Message, Tool
from intercode.models.prices import find_price
from intercode.models.providers.chat_requests import chat_messages, request_fields, tool_specs
from intercode.models.providers.chat_responses import InvalidResponseError, parse_response_data
from intercode.models.providers.client_library import LibraryModel
from intercode.models.providers.event_stream import join_chunks
from intercode.models.transport.retry import AttemptError

PROVIDER = "litellm"


_FURTHER_VARIABLES = {
    "azure_text": ("AZURE_API_BASE",),
    "cohere_chat": ("COHERE_API_BASE",),
    "ollama_chat": ("OLLAMA_API_BASE",),
    "text-completion-openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "vertex_ai": ("VERTEXAI_API_BASE", "VERTEX_API_BASE"),
}
"""Variables that are not named after the provider."""

_AWS = ("AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION")
_VERTEX = ("VERTEXAI_LOCATION", "VERTEX_LOCATION")
_REGION_VARIABLES = {
    "bedrock": _AWS,
    "bedrock_converse": _AWS,
    "sagemaker": _AWS,
    "sagemaker_chat": _AWS,
    "vertex_ai": _VERTEX,
    "vertex_ai_beta": _VERTEX,
}
"""Variables from which a provider without an address of its own has the region of its servers. The
first that is set counts."""


class LiteLLMModel(LibraryModel):
    """A model that LiteLLM knows, under LiteLLM's name for it, such as ``bedrock/...``.

    Without ``api_key``, LiteLLM reads the key from the provider's own environment variables. Its
    retries are disabled in favour of this package's. It does not download a table of prices.
    """

    library_name = prefix = PROVIDER

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        **options: Any,
    ) -> None:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # read at import
        provider, _, short = name.partition("/")
        super().__init__(
            name,
            base_url,
            api_key,
            options,
            provider=provider if short else "",
            default_address=_default_address(provider),
            address_variables=_address_variables(name),
        )
        self._library.suppress_debug_info = True
        conduct = self.request_options
        self.price = find_price(self.provider, short or name, conduct.prices, conduct.price)

    def connect(self) -> Any:
        """See Endpoint. LiteLLM manages connections itself."""
        return SimpleNamespace(acompletion=self._library.acompletion)

    def request(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        fields = {"model": self.name, **request_fields(self.generation, "chat")}
        request = {**fields, "messages": chat_messages(messages, None)}
        return {**request, "tools": tool_specs(tools)} if tools else request

    async def send(self, client: Any, request: dict[str, Any], seconds: float) -> Completion:
        if self.stream:
            request = {**request, "stream": True, "stream_options": {"include_usage": True}}
        answer = client.acompletion(
            **request,
            api_key=self._key,
            api_base=self._base_url,
            timeout=seconds,
            num_retries=0,
            max_retries=0,
            extra_headers=dict(self.generation.headers) or None,
        )
        try:
            if self.stream:
                stream = await self.without_silence(answer)
                chunks = await self.collect(stream)
                if stream.received_finish_reason is None:  # the library would invent one
                    raise AttemptError("the stream broke off", response_lost=True)
                return parse_response_data(join_chunks(c.model_dump() for c in chunks), 1)
            return parse_response_data((await answer).model_dump(), 1)
        except InvalidResponseError as e:
            raise AttemptError(self.redact(str(e)), response_lost=True) from None


def _default_address(provider: str) -> str:
    """Return what stands for the address of a provider's own servers, with their region."""
    variables = _REGION_VARIABLES.get(provider, ())
    region = next(filter(None, map(os.environ.get, variables)), "")
    return f"litellm:{provider}:{region}" if region else f"litellm:{provider}"


def _address_variables(name: str) -> list[str]:
    """Return the variables from which LiteLLM reads the address of a model's provider."""
    provider, _, short = name.partition("/")
    if not short:
        try:
            provider = importlib.import_module(PROVIDER).get_llm_provider(name)[1]
        except Exception:  # it does not know the model, or is not installed
            provider = "openai"
    own = provider.upper().replace("-", "_")
    names = [
        f"{own}_API_BASE",
        f"{own}_BASE_URL",
        f"{own}_URL",
        *_FURTHER_VARIABLES.get(provider, ()),
    ]
    return ["OPENAI_BASE_URL", *names] if provider == "openai" else names
