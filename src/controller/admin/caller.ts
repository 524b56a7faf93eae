import { userInfo } from 'node:os'

import { type Actor, createSystemActor } from '../../ports/actor.ts'

/** User who runs a command on this host, as the command itself reports. */
interface AdminCaller {
  readonly uid: number
  readonly name: string
}

/**
 * Request header that is used only at the admin socket: uid and name of the caller, such as `1000
 * alice`.
 */
export const CALLER_HEADER = 'flotilla-caller'

const CALLER = /^(\d{1,10}) (.*)$/
const NAME_CHARACTERS_MAX = 64
/** User names without characters that could imitate another line or field in a log. */
const NAME = /^[A-Za-z0-9._@\\-]+\$?$/

export function currentProcessCaller(): AdminCaller {
  return { uid: process.getuid?.() ?? 0, name: ownName() }
}

/** Header that identifies this process's user as the caller. */
export function adminCallerHeader(): Readonly<Record<string, string>> {
  const { uid, name } = currentProcessCaller()
  return { [CALLER_HEADER]: `${uid} ${name}` }
}

/** The name of this process's user; '' if the uid has no name on this host. */
function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return ''
  }
}

/**
 * Actor for a request at the admin socket. Only two users can open a socket of mode 0600: root and
 * the controller's user. The client claims to be one of them; for any other claim, the result is
 * the controller's user. The claim is not verified, because Node cannot read SO_PEERCRED from the
 * kernel. It gives no additional rights: both users have the same rights at this socket.
 */
export function actorFromCallerHeader(header: unknown, own: AdminCaller): Actor {
  const [, uidText = '', name = ''] = typeof header === 'string' ? (CALLER.exec(header) ?? []) : []
  const uid = uidText === '' ? NaN : Number(uidText)
  // @guard system-caller-over-tcp--uid
  const isEither = uid === 0 || uid === own.uid
  const known = isEither && (name === '' || isName(name)) ? { uid, name } : own
  const inBrackets = known.name === '' ? '' : ` (${known.name})`
  return createSystemActor({ name: `uid:${known.uid}${inBrackets}` })
}

function isName(name: string): boolean {
  return name.length <= NAME_CHARACTERS_MAX && NAME.test(name)
}
