#!/bin/sh
# Writes promptfoo.json and promptfoo.jsonl with promptfoo itself (npm install promptfoo; its bin on PATH).
# Nothing is called over the network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"
cat > provider.js <<'EOF'
// Answers as an agent with a tool would.
module.exports = class {
  id() { return "shop-agent"; }
  async callApi(prompt) {
    const tokenUsage = { total: 55, prompt: 50, completion: 5 };
    if (prompt.includes("Cancel")) {
      const call = { name: "cancel", arguments: '{"order":"A1"}' };
      return { output: [{ id: "c1", type: "function", function: call }], tokenUsage };
    }
    return { output: "It is on the way.", tokenUsage };
  }
};
EOF
cat > promptfooconfig.yaml <<'EOF'
prompts:
  - '[{"role":"system","content":"You help customers of a shop."},{"role":"user","content":"Hello"},{"role":"assistant","content":"How can I help?"},{"role":"user","content":"{{question}}"}]'
providers:
  - file://provider.js
tests:
  - description: tracking
    vars: { question: Where is order A1? }
    assert:
      - { type: equals, value: It is on the way. }
  - vars: { question: Cancel order A1. }
    metadata: { area: orders }
EOF
export PROMPTFOO_DISABLE_TELEMETRY=1 PROMPTFOO_DISABLE_UPDATE=1 PROMPTFOO_CONFIG_DIR="$work/config"
promptfoo eval --repeat 2 --no-cache --no-table -o "$here/promptfoo.json" -o "$here/promptfoo.jsonl"
rm -r "$work"
