"""Texts that would run a script if a page took them for markup, an attribute, an address or code."""

from itertools import product
from typing import Final

RUN: Final = "window.hacked=1"
_ELEMENTS: Final = (
    "<script>{run}</script>",
    "<img src=x onerror={run}>",
    "<svg onload={run}>",
    "<svg><script>{run}</script></svg>",
    "<body onload={run}>",
    "<iframe srcdoc='<script>parent.{run}</script>'></iframe>",
    "<iframe src=javascript:parent.{run}></iframe>",
    "<details open ontoggle={run}>",
    "<input autofocus onfocus={run}>",
    "<video><source onerror={run}></video>",
    "<audio src=x onerror={run}>",
    "<style onload={run}></style>",
    "<object data=javascript:{run}></object>",
    "<math><mtext></style><img src=x onerror={run}></mtext></math>",
    "<template><script>{run}</script></template><img src=x onerror={run}>",
    "<a href=javascript:{run} autofocus onfocus={run}>x</a>",
    "<select autofocus onfocus={run}></select>",
    "<marquee onstart={run}>x</marquee>",
    "<form><button formaction=javascript:{run} autofocus onfocus={run}>x</button></form>",
    "<div style=animation-name:x onanimationstart={run}>x</div>",
)
_BREAKS: Final = (
    "{}",
    '">{}',
    "'>{}",
    "</script>{}",
    "</title>{}",
    "</style>{}",
    "</textarea>{}",
    "<!-- -->{}",
    "--!>{}",
    "]]>{}",
    "`>{}",
    "\u2028{}",
    "</SCRIPT >{}",
    "</option></select>{}",
)
_CODE: Final = (
    "';{run};'",
    '";{run};"',
    "`;{run};`",
    "${{{run}}}",
    "{{{{{run}}}}}",
    "</script><script>{run}//",
    "javascript:{run}",
    "\\u003cscript\\u003e{run}\\u003c/script\\u003e",
    "&lt;script&gt;{run}&lt;/script&gt;",
    "&#60;script&#62;{run}&#60;/script&#62;",
    '" onmouseover={run} autofocus onfocus={run} x="',
    "' onmouseover={run} autofocus onfocus={run} x='",
    "x onerror={run} src=x",
    "\\';{run}//",
    '\\";{run}//',
    "*/{run}/*",
    "');{run}//",
    '"));{run}//',
    "__proto__",
    "constructor",
)
PAYLOADS: Final = tuple(
    dict.fromkeys(
        [
            *(code.format(run=RUN) for code in _CODE),
            *(outer.format(element.format(run=RUN)) for outer, element in product(_BREAKS, _ELEMENTS)),
        ]
    )
)
"""All payloads: 300."""
FEW: Final = PAYLOADS[:: len(PAYLOADS) // 15]
"""Every twentieth of them."""
