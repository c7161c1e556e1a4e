"""Applies the rules of access (``sandbox/remote/access.py``) to a server of environments. Errors of
a request become responses with a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import HTTPException, RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from intercode.core.errors import EnvironmentStateError, InfrastructureError, UsageError
from intercode.integrations.checked_application import CheckedApplication, error_response
from intercode.sandbox.remote.access import Access


def protect(application: FastAPI, access: Access) -> None:
    """Let an application answer only the requests that ``access`` allows, and answer those that
    fail with a status and a message."""
    application.add_middleware(CheckedApplication, access=access)
    statuses = {
        UsageError: 400, IndexError: 400, EnvironmentStateError: 409, InfrastructureError: 503
    }  # fmt: skip
    for kind, status in statuses.items():
        application.add_exception_handler(kind, _responder(status))
    application.add_exception_handler(RequestValidationError, _invalid_request)
    application.add_exception_handler(HTTPException, _http_error)


def _responder(status: int) -> Callable[[Request, Exception], Response]:
    return lambda _, error: error_response(status, str(error))


def _invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_response(422, _without_input(error.errors()))


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, _without_input(error.detail), error.headers)


def _without_input(detail: Any) -> Any:
    """Return the errors of a validation without the input, which JSON may not be able to hold."""
    if not isinstance(detail, list | tuple):
        return detail
    return [{k: error[k] for k in ("type", "loc", "msg") if k in error} for error in detail]
