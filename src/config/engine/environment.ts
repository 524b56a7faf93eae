import { tmpdir } from 'node:os'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Name of the variable that overrides a key: `raft.tickMs` → FLOTILLA_RAFT_TICK_MS, `web[0].bind` →
 * FLOTILLA_WEB_0_BIND.
 */
export function environmentName(prefix: string, key: string): string {
  const words = key
    .replaceAll(/\[(\d+)\]/g, '_$1')
    .replaceAll('.', '_')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
  return prefix + words.toUpperCase()
}

/** A string after its variables were replaced. */
interface Filled {
  readonly text: string
  readonly names: readonly string[]
  /** Names of unset variables; each is replaced by an empty string. */
  readonly missing: readonly string[]
}

const VARIABLE = /\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))/g
const temporary: ReadonlySet<string> = new Set(['TMP', 'TEMP', 'TMPDIR'])
/**
 * Maximum characters of one value with its variables replaced; the first variable that would exceed
 * it, and all later ones in the value, are replaced by an empty string.
 */
const FILLED_CHARACTERS_MAX = 256 * 1024

/**
 * Replaces `$NAME` and `${NAME}`. There is no syntax for defaults or escapes. TMP, TEMP and TMPDIR
 * mean the temporary folder of the system if they are unset.
 */
export function substituteVariables(text: string, environment: Environment): Filled {
  const names: string[] = []
  const missing: string[] = []
  if (!text.includes('$')) return { text, names, missing }
  let length = text.length
  const filled = text.replaceAll(VARIABLE, (_, braced?: string, bare?: string) => {
    const name = braced ?? bare ?? ''
    const set = Object.hasOwn(environment, name) ? environment[name] : undefined
    const found = set ?? (temporary.has(name) ? tmpdir() : undefined)
    if (!names.includes(name)) names.push(name)
    if (found === undefined && !missing.includes(name)) missing.push(name)
    length += found?.length ?? 0
    return length > FILLED_CHARACTERS_MAX ? '' : (found ?? '')
  })
  return { text: filled, names, missing }
}
