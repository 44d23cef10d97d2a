"""What emoji say, on the scale of the word list: each scores like the word for what it shows.

A heart is worth what "love" is worth (3), an angry face what "angry" is (-3). Emoji that say nothing
about mood are not listed.
"""

from __future__ import annotations

_BY_SCORE = {
    4: "🤩🥳🎉🎊🏆💯",
    3: "😀😃😄😁😊☺🥰😍😘😻❤♥❣💓💕💖💗💘💙💚💛💜💝💞💟🧡🖤🤍🤎🤗👏🙌🥇💐🌈👍👌😇😎🌟",
    2: "🙂😉😋😌😚😗😙😸😺😽🤭🤝🙏✨⭐🌞☀🌹🌺🌸💪🎁🍀🆒✌🤟🤘🫶🚀✅✔☑🎈🥂🍾🎯",
    1: "😂🤣😆😅😜😝😛🤪🤠😹🌻🌼🍻☘🆗💡🔥",
    -1: "😐😑😶😒🙄😬😕🤨😓😪🥱😷⚠🆘❌✖⛔🚫",
    -2: "🙁☹😟😔😞😣😖😫😩😥😢😭😿🥺😰😨😱😧😦💔👎🤕🤒🤢😤🙀💀☠😵🥴",
    -3: "😠😡😾👿😈🤮🤬💩🖕",
}

EMOJI_SCORES = {emoji: score for score, several in _BY_SCORE.items() for emoji in several}
