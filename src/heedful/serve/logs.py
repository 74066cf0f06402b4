"""Logs as one JSON object per line; none of them holds what users sent."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON, with the fields of `extra={"fields": {...}}`."""

    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            content["error"] = self.formatException(record.exc_info)
        return json.dumps(content, ensure_ascii=True)


def log_config(level: str = "INFO") -> dict[str, Any]:
    """Return the configuration of Python's logging for a server."""
    names = ("heedful.serve", "uvicorn", "uvicorn.error")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": {name: {"handlers": ["stderr"], "level": level, "propagate": False} for name in names},
    }
