import { userInfo } from 'node:os'

import { type Actor, systemActor } from '../../ports/actor.ts'

/** User who runs a command of this host, as the process says of itself. */
export interface AdminCaller {
  readonly uid: number
  readonly name: string
}

/**
 * A header of requests at the admin socket, looked at nowhere else: `1000 alice`, the uid and the
 * name of who asks.
 */
export const CALLER_HEADER = 'flotilla-caller'

const CALLER = /^(\d{1,10}) (.*)$/
const NAME_CHARACTERS_MAX = 64
/** User names, with nothing in them that could pass for another line or field. */
const NAME = /^[A-Za-z0-9._@\\-]+\$?$/

export function ownCaller(): AdminCaller {
  return { uid: process.getuid?.() ?? 0, name: ownName() }
}

/** Header by which a request of this process names its caller. */
export function callerHeader(): Readonly<Record<string, string>> {
  const { uid, name } = ownCaller()
  return { [CALLER_HEADER]: `${uid} ${name}` }
}

/** A uid need not have a name on this host. */
function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return ''
  }
}

/**
 * The actor of what is asked at the admin socket. Only two users can open a socket of mode 0600:
 * the one that the controller runs as, and root. The program that asks says which of the two it is;
 * whatever else it says counts as the controller's user. Node cannot ask the kernel (SO_PEERCRED),
 * so between those two, both of whom may do everything here, it is a word.
 */
export function actorAt(header: unknown, own: AdminCaller): Actor {
  const [, uidText = '', name = ''] = typeof header === 'string' ? (CALLER.exec(header) ?? []) : []
  const uid = uidText === '' ? NaN : Number(uidText)
  // @guard system-caller-over-tcp--uid
  const isEither = uid === 0 || uid === own.uid
  const known = isEither && (name === '' || isName(name)) ? { uid, name } : own
  const inBrackets = known.name === '' ? '' : ` (${known.name})`
  return systemActor({ name: `uid:${known.uid}${inBrackets}` })
}

function isName(name: string): boolean {
  return name.length <= NAME_CHARACTERS_MAX && NAME.test(name)
}
