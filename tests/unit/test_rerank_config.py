"""Settings of the rerank process."""

from __future__ import annotations

import pytest

from services.rerank.config import read_config
from services.rerank.scoring import Options
from services.runtime.config import ConfigError, Settings


def test_defaults_ask_nobody_and_let_no_provider_keep_anything() -> None:
    config = read_config(Settings({}))
    assert (config.key, config.decisions_url) == ("", "https://openrouter.ai")
    assert config.options == Options(private=True, ask_answerable=False)
    assert config.port == 7404


def test_every_setting_is_read() -> None:
    config = read_config(
        Settings(
            {
                "OPEN_ROUTER": " sk-or-v1-abc\n",
                "RECALL_DECISIONS_URL": "http://127.0.0.1:7490",
                "RECALL_DECISIONS_PRIVACY": "allow",
                "RECALL_DECISIONS_ANSWERABLE": "on",
            }
        )
    )
    assert (config.key, config.decisions_url) == ("sk-or-v1-abc", "http://127.0.0.1:7490")
    assert config.options == Options(private=False, ask_answerable=True)


def test_every_fault_is_reported_at_once_and_the_key_is_not_repeated() -> None:
    settings = Settings(
        {
            "OPEN_ROUTER": "sk-secret key",
            "RECALL_DECISIONS_URL": "openrouter.ai",
            "RECALL_DECISIONS_PRIVACY": "perhaps",
            "RECALL_DECISIONS_ANSWERABLE": "2",
        }
    )
    with pytest.raises(ConfigError) as raised:
        read_config(settings)
    faults = str(raised.value)
    assert len(faults.splitlines()) == 4
    assert "secret" not in faults


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host",
        "https://",
        "https://user:pw@host",
        "https://host?key=1",
        "http://h:port",
        "//h",
    ],
)
def test_an_unusable_address_is_a_fault(url: str) -> None:
    with pytest.raises(ConfigError, match="RECALL_DECISIONS_URL"):
        read_config(Settings({"RECALL_DECISIONS_URL": url}))
