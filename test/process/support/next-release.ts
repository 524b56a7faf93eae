import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

// Preloaded into a controller (`node --import`), it makes the controller behave like the next
// release: with one more feature level, and one more field of services that this level introduces.
// The program itself does not contain either of these.

const root = new URL('../../../', import.meta.url).href

type Change = (source: string) => string

/** One more than the highest feature level of the program. */
const level =
  Number(
    /FEATURE_LEVEL = (\d+)/.exec(
      readFileSync(new URL(`${root}src/ports/feature-level.ts`), 'utf8'),
    )?.[1],
  ) + 1

const changes: ReadonlyMap<string, Change> = new Map([
  [
    `${root}src/ports/feature-level.ts`,
    (source: string) => replaced(source, /(export const FEATURE_LEVEL) = \d+/, `$1 = ${level}`),
  ],
  [
    `${root}src/entities/kinds/service.ts`,
    (source: string) => {
      const owner = `$1    owner: nextText({ since: ${level} }),\n`
      const fields = replaced(source, /( {2}fields: markShownInEvents\(\{\n)/, owner)
      return `import { textField as nextText } from '../fields.ts'\n${fields}`
    },
  ],
])

/** @throws when the source has nothing to replace: the test would then prove nothing. */
function replaced(source: string, pattern: RegExp, by: string): string {
  const changed = source.replace(pattern, by)
  if (changed === source) throw new Error(`the next release cannot be made: ${String(pattern)}`)
  return changed
}

registerHooks({
  load(url, context, nextLoad) {
    const change = changes.get(url)
    if (change === undefined) return nextLoad(url, context)
    const source = change(readFileSync(fileURLToPath(url), 'utf8'))
    return { format: 'module-typescript', source, shortCircuit: true }
  },
})
