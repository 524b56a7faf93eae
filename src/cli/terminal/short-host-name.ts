import { printNote } from './output.ts'

/**
 * Warning for a host name of this host that a command advertises because `--advertise` is missing.
 * @returns null if the name has a domain, so that other hosts usually resolve it.
 */
export function shortHostNameWarning(name: string): string | null {
  if (name.includes('.') || name.includes(':') || name === 'localhost') return null
  return `--advertise is missing, so addresses and certificates contain the host name ${name}, which has no domain; unless every other host resolves ${name}, start over with the full name or an IP address of this host, such as --advertise ${name}.example.net`
}

/**
 * Prints a warning on stderr. A command prints it once it has succeeded: with `--json`, the stderr
 * of a failed command contains only the error.
 */
export function printWarning(warning: string | null): void {
  if (warning !== null) printNote(`flotilla: warning: ${warning}`)
}
