"""Plugins: the registry of evaluator and connector types, and loading them from a config file."""

from __future__ import annotations

from .loading import load_named, load_plugins
from .registry import LoadedPlugin, Plugin, PluginError, PluginRegistry, create_registry

__all__ = [
    "LoadedPlugin",
    "Plugin",
    "PluginError",
    "PluginRegistry",
    "create_registry",
    "load_named",
    "load_plugins",
]
