import { printNote } from './output.ts'

/**
 * Warning for a host name of this host that a command advertises because `--advertise` is missing.
 * @returns null for a name with a domain, which other hosts usually resolve, for an IP address, and
 * for `localhost`.
 */
export function shortHostNameWarning(name: string): string | null {
  if (name.includes('.') || name.includes(':') || name === 'localhost') return null
  return `--advertise is missing, so addresses and certificates contain the host name ${name}, which has no domain; unless every other host resolves ${name}, start over with the full name or an IP address of this host, such as --advertise ${name}.example.net`
}

/**
 * Prints a warning on stderr. A command must call this only after it has succeeded: with `--json`,
 * the stderr of a failed command contains only the error.
 */
export function printWarning(warning: string | null): void {
  if (warning !== null) printNote(`flotilla: warning: ${warning}`)
}
