/** Characters that reorder or hide parts of the text around them (Unicode, UAX 9 and 31). */
const HIDDEN = /[\u0000-\u001F\u007F-\u009F\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]/g

const PEM_LINE = /^(?:-----(?:BEGIN|END) [A-Z ]+-----|[A-Za-z0-9+/=]*)$/

/**
 * A value in a list of changes. Certificates keep their line breaks. In other texts, line breaks
 * are made visible, because they could forge further changes.
 */
export function visibleValue(text: string): string {
  const isPem =
    text.startsWith('-----BEGIN ') && text.split(/\r?\n/).every((line) => PEM_LINE.test(line))
  return isPem ? visibleBlock(text) : visibleText(text)
}

/** Text of several lines, such as JSON: its line breaks and tabs are not hidden characters. */
export function visibleBlock(text: string): string {
  return text
    .split(/(\r?\n|\t)/)
    .map((part) => (/^(\r?\n|\t)$/.test(part) ? part : visibleText(part)))
    .join('')
}

/**
 * A name in which characters that reorder or hide text are made visible: `invoice\u202Efdp.exe`
 * must not look like a PDF file.
 */
export function visibleText(text: string): string {
  return text.replace(
    HIDDEN,
    (character) =>
      `\u2039U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}\u203A`,
  )
}
