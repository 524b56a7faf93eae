import { hostname } from 'node:os'

import { printNote } from './output.ts'

/**
 * The name of this host, for a configuration whose `--advertise` is missing. Prints a warning if
 * the name has no domain, because other hosts often cannot resolve such a name.
 */
export function advertisedHostName(): string {
  const name = hostname()
  if (name.includes('.') || name.includes(':') || name === 'localhost') return name
  printNote(
    `flotilla: warning: --advertise is missing, so addresses and certificates contain the host name ${name}, which has no domain; unless every other host resolves ${name}, start over with the full name or an IP address of this host, such as --advertise ${name}.example.net`,
  )
  return name
}
