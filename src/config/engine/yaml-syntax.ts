import type { LineCounter, YAMLError } from 'yaml'

const FAULTS_MAX = 3
const CHARACTERS_MAX = 200

/** Sentences in place of those of the parser, which speak of its grammar. */
const sentences: Readonly<Record<string, string>> = {
  BLOCK_AS_IMPLICIT_KEY: 'a key follows a value on its line; check indentation and colons',
  DUPLICATE_KEY: 'the same key is given twice in this section; keep one of them',
  MULTILINE_IMPLICIT_KEY: 'a key goes over several lines; check indentation and colons',
  TAB_AS_INDENT: 'a tab is used as indentation; use spaces',
}

/**
 * The first faults that keep a text from being YAML, as each of the others may follow from them.
 */
export function syntaxFaults(
  errors: readonly YAMLError[],
  lines: LineCounter,
): { line: number; problem: string }[] {
  const found = new Map<number, string>()
  for (const { code, message, pos } of errors) {
    const { line } = lines.linePos(pos[0])
    if (!found.has(line)) found.set(line, sentences[code] ?? plain(message))
  }
  return [...found]
    .slice(0, FAULTS_MAX)
    .map(([line, problem]) => ({ line, problem: `invalid YAML: ${problem}` }))
}

/** The same of keys that are given twice, by their lines. */
export function duplicateFaults(lines: readonly number[]): { line: number; problem: string }[] {
  const problem = `invalid YAML: ${sentences['DUPLICATE_KEY'] ?? ''}`
  return [...new Set(lines)].slice(0, FAULTS_MAX).map((line) => ({ line, problem }))
}

function plain(message: string): string {
  const [first = ''] = message.split('\n')
  return first.replace(/ at line \d+, column \d+:?$/, '').slice(0, CHARACTERS_MAX)
}
