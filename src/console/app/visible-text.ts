/** Characters that reorder or hide parts of the text around them (Unicode, UAX 9 and 31). */
const HIDDEN = /[\u0000-\u001F\u007F-\u009F\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]/g

/** Text of several lines, such as JSON: its line breaks and tabs are not hidden characters. */
export function visibleBlock(text: string): string {
  return text
    .split(/(\r?\n|\t)/)
    .map((part) => (/^\s+$/.test(part) ? part : visibleText(part)))
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
