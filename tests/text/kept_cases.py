"""Texts and the spans that stay as they are in them, of all kinds; words that are none."""

from typing import Final

CASES: Final[tuple[tuple[str, list[str]], ...]] = (
    # Words of many hyphens
    ("Ein " + "Hund-" * 12 + "Hund und " + "Ein-" * 13 + ".", ["Hund-" * 12 + "Hund", "Ein-" * 13]),
    ("Ein " + "Hund-" * 11 + "Hund", []),
    # Addresses
    (
        "Siehe https://de.wikipedia.org/wiki/Hund_(Tier) dort (https://example.org/a_(b)), (siehe https://example.org/c).",
        ["https://de.wikipedia.org/wiki/Hund_(Tier)", "https://example.org/a_(b)", "https://example.org/c"],
    ),
    ("Nach HTTPS://EXAMPLE.ORG/A und Www.example.org!", ["HTTPS://EXAMPLE.ORG/A", "Www.example.org"]),
    ("Mit ssh://host/a und git+ssh://host/b geht es", ["ssh://host/a", "git+ssh://host/b"]),
    (
        "Laut heise.de, example.org/pfad. Oder bbc.co.uk, uibk.ac.at, HEISE.DE, youtu.be/abc und a.com:80/?q=1!",
        ["heise.de", "example.org/pfad", "bbc.co.uk", "uibk.ac.at", "HEISE.DE", "youtu.be/abc", "a.com:80/?q=1"],
    ),
    ("Frage auf example.org?", ["example.org"]),
    ("An mailto:max@example.org, max.muster@heise.de", ["mailto:max@example.org", "max.muster@heise.de"]),
    ("Folge @max@mastodon.social. Und @max, #hund", ["@max@mastodon.social", "@max", "#hund"]),
    ('Ein <a href="https://example.org">Bild</a> hier', ['<a href="https://example.org">', "</a>"]),
    ("Ein <https://example.org> und <max@example.org>", ["https://example.org", "max@example.org"]),
    # Files and options
    (
        "Öffne /etc/hosts, /api/v1/a, ~/x, ./run.sh und ../a/b/.",
        ["/etc/hosts", "/api/v1/a", "~/x", "./run.sh", "../a/b/"],
    ),
    (r"In C:\Users\x. Auch D:\a\b.txt", [r"C:\Users\x", r"D:\a\b.txt"]),
    ("Die Datei report.pdf, src/main.py und Node.js", ["report.pdf", "src/main.py", "Node.js"]),
    ("Starte mit --help oder --dry-run, --out=x.txt", ["--help", "--dry-run", "--out=x.txt"]),
    # Numbers
    ("Ruf +49 (0)30 1234-5678 an", ["+49 (0)30 1234-5678"]),
    ("Oder +1 555 123 4567, (555) 123-4567.", ["+1 555 123 4567", "(555) 123-4567"]),
    ("Es sind -7 Grad, -5 °C, +3, 20°C", ["-7", "-5 °C", "+3", "20°C"]),
    ("Es sind € 20, 20 €, $ 5", ["€ 20", "20 €", "$ 5"]),
    ("Er nimmt 5kg, 10km/h, 5m², 3h und 5kWh", ["5kg", "10km/h", "5m²", "3h", "5kWh"]),
    ("Version v1.2.3, v2 und V1.0-beta", ["v1.2.3", "v2", "V1.0-beta"]),
    ("Etwa 5'000 Leute, Fall #42, 0x1F, ½, 1½", ["5'000", "#42", "0x1F", "½", "1½"]),
    ("Um 14h30, 3-5 Hunde, 23日-26日", ["14h30", "3-5", "23", "26"]),
    ("Ab 2021-05-03T10:00:00+02:00, 2021-05-03T10:00Z", ["2021-05-03T10:00:00+02:00", "2021-05-03T10:00Z"]),
    # Names with digits
    ("Nr. 550e8400-e29b-41d4-a716-446655440000!", ["550e8400-e29b-41d4-a716-446655440000"]),
    ("Der d41d8cd98f00b204e9800998ecf8427e und 7cfca1a", ["d41d8cd98f00b204e9800998ecf8427e", "7cfca1a"]),
    ("Ein a1b2c3d4, #1a2b3c", ["a1b2c3d4", "#1a2b3c"]),
    ("Setze max_value, user_id und MAX_SIZE_2", ["max_value", "user_id", "MAX_SIZE_2"]),
    # Placeholders
    ("Hallo %{name}, #{name}, ${name}, {}", ["%{name}", "#{name}", "${name}", "{}"]),
    ("Hallo {{x}}, {{{y}}}, {a {b} c}", ["{{x}}", "{{{y}}}", "{a {b} c}"]),
    ("Hallo __NAME__, <%= x %> und <?php y ?>", ["__NAME__", "<%= x %>", "<?php y ?>"]),
    ("Tippe ```x = `1` ``` und ``a`b``, `y = 2`", ["```x = `1` ```", "``a`b``", "`y = 2`"]),
    (
        "Hallo&nbsp;Welt &#8211; &amp; [[x y]], %% und \\* \\_ \\nDer",
        ["&nbsp;", "&#8211;", "[[x y]]", "%%", "\\*", "\\_", "\\n"],
    ),
    ("Nach § 5, §§ 12a und 100%% der", ["§ 5", "§§ 12a", "100%%"]),
    # Words that are none
    (f"Ein {'a' * 8} und {'ab' * 21}, {'aB1/' * 11}=", ["a" * 8, "ab" * 21, "aB1/" * 11 + "="]),
    # Signs
    ("Taste 1️⃣ #️⃣ ⌨️ Ⓜ️", ["1️⃣", "#️⃣", "⌨️", "Ⓜ️"]),
    (
        "Aus \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f oder 🇩🇪",
        ["🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "🇩🇪"],
    ),
    ("Ja 😀😀 👍🏽👩‍🚀 → © 2020 Windows™", ["😀😀", "👍🏽👩‍🚀", "→", "©", "2020", "™"]),
)
"""Texts and their kept spans, in order."""
ORDINARY: Final = (
    "Er wohnt z.B. im Haus.Der Hund bellt.es regnet,u.a. am Tag",
    "die Mitarbeiter_innen, jede_r Schüler_in, km/h und/oder he/she",
    "Das geht so -- oder --- so, e.g. at p.m.at und Str.an",
    "die 90er, 80s, 2nd, Covid19, mp3, 3d, $53m",
    "clichÃ©s, â€™ und ``das'' sowie ``jenes'' und `so' oder `so'",
    f"Rechtsschutzversicherungsgesellschaften, {'我' * 99}, Neeeeeeeeein, {'abc-' * 11}abc",
    "[name] und __so__ und *so* und _so_ {",
    "Geh hin/weg. / Oder /nicht und Autor /Dichter/Maler.",
    "We enjoyed the ride.at last it ended --and nobody --not even he -- saw it",
)
"""Texts without kept spans."""
SCRIPTS: Final = (
    ("Er sagt नमस्ते दुनिया!", ["नमस्ते दुनिया"]),
    ("Er sagt می‌خواهم.", ["می‌خواهم"]),
    ("Er sagt สวัสดี und שָׁלוֹם", ["สวัสดี", "שָׁלוֹם"]),
    ("Er sagt Привет, мир", ["Привет", "мир"]),
    ("Das Zeichen \u093e allein", []),
    ("Er sagt e\u0301t Приве\u0301т", ["Приве\u0301т"]),
)
"""Texts with words in scripts that a model of Latin does not know, and those words."""
