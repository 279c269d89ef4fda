/* What the theme leaves to be desired for keyboards and screen readers. */
addEventListener("load", () => setTimeout(() => {
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .formula, .md-typeset p:has(> img)"))
    if (part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight) part.tabIndex = 0;
  // A picture that goes on beyond the edge of a phone fades there.
  for (const part of document.querySelectorAll(".md-typeset p:has(> img)")) {
    const fade = () => part.classList.toggle("beyond", part.scrollLeft + part.clientWidth < part.scrollWidth - 2);
    part.addEventListener("scroll", fade);
    fade();
  }
  for (const part of document.querySelectorAll("input.md-toggle")) part.setAttribute("aria-label", part.id.replace(/_+/g, " ").trim());
}));
