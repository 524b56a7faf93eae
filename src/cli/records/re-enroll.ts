import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  toOperatorFailure,
  usageFailure,
} from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { writeNewFile } from '../../pki/secret-file.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import {
  nullableShape,
  objectShape,
  optionalShape,
  textShape,
  validateResponse,
} from '../client/response-shape.ts'
import { refuseExistingFile } from '../terminal/make-folder.ts'
import { printJson, printLine, printNote, quoteShellWord } from '../terminal/output.ts'
import { isInteractive, promptLine } from '../terminal/prompt.ts'
import { findKind, kindById, kindNameInWords, recordPath, type RecordKind } from './kinds.ts'
import { RecordNameResolver, sendKindRequest } from './names.ts'
import { readRows } from './read.ts'
import { type ApiRecordRow, createdRecordShape, readMemberAt, toFilterLiteral } from './rows.ts'
import { rowName } from './table.ts'
import { sendRecordWrite } from './write.ts'

export interface ReEnrollOptions extends ContextOptions {
  readonly out?: string
  readonly yes?: boolean
}

/**
 * Validity of a new token for an identity. The API requires a time from the caller; the console
 * uses the same validity.
 */
const IDENTITY_TOKEN_MS = 24 * 60 * 60 * 1000

/** A record that can be re-enrolled, and how to do it. */
interface Subject {
  /** Name of the record in a message, such as `edge router edge1`. */
  readonly label: string
  /** Whether the record has credentials, which the re-enrollment makes invalid. */
  readonly isEnrolled: boolean
  /** Sends the re-enrollment. @returns the new token. */
  readonly reEnroll: () => Promise<NewToken>
}

interface NewToken {
  readonly jwt: string
  readonly expiresAt: string | null
  /** Words of the command that shows the token, without the name of the program. */
  readonly shownBy: string
}

/**
 * Makes the certificate of an edge router or an identity invalid, and writes the token with which
 * it enrolls again. The record keeps its ID and everything that policies give to it.
 * @throws {CommandFailure} with nothing changed, unless its message says otherwise.
 */
export async function reEnrollRecord(
  word: string,
  name: string,
  options: ReEnrollOptions,
): Promise<void> {
  const kind = findKind(word)
  const subjectOf = subjects[kind.id]
  if (subjectOf === undefined) throw kindFailure(kind)
  const { out } = options
  // Checked first, because the token must not be lost after the certificate has become invalid.
  if (out !== undefined) await refuseExistingFile(out)
  const client = openContextClient(options)
  const row = await new RecordNameResolver(client).record(kind, name)
  const subject = await subjectOf(client, kind, row)
  if (subject.isEnrolled && options.yes !== true) await confirm(subject.label)
  const token = await subject.reEnroll()
  if (out !== undefined) writeToken(out, token)
  report({ kind, row, label: subject.label, token }, options)
}

const subjects: Readonly<
  Record<string, (client: ApiClient, kind: RecordKind, row: ApiRecordRow) => Promise<Subject>>
> = {
  edgeRouter: (client, kind, row) => Promise.resolve(edgeRouterSubject(client, kind, row)),
  identity: identitySubject,
  authenticator: (client, kind, row) =>
    Promise.resolve(authenticatorSubject(client, row.id, `${kind.name} ${row.id}`)),
}

function kindFailure({ id, plural }: RecordKind): CommandFailure {
  const hint =
    id === 'transitRouter' || id === 'router'
      ? 'the API offers this for edge routers only; delete the router and create it again'
      : 'name an edge router, an identity or an authenticator'
  return usageFailure(`${kindNameInWords(plural)} cannot be re-enrolled; ${hint}`)
}

function edgeRouterSubject(client: ApiClient, kind: RecordKind, row: ApiRecordRow): Subject {
  const label = `${kindNameInWords(kind.name)} ${rowName(kind, row)}`
  const path = recordPath(kind, row.id, 'detail')
  return {
    label,
    isEnrolled: row['isVerified'] === true,
    reEnroll: async () => {
      const request = { method: 'POST', path: `${path}/re-enroll` } as const
      await sendRecordWrite(client, kind, `re-enroll ${label}`, request)
      const shownBy = `get ${kind.name} ${quoteShellWord(row.id)}`
      const { data } = await readToken(shownBy, () =>
        sendKindRequest(client, kind, { method: 'GET', path }, routerShape),
      )
      const { enrollmentJwt: jwt, enrollmentExpiresAt: expiresAt = null } = data
      return { jwt, expiresAt, shownBy }
    },
  }
}

const routerShape = objectShape<{
  readonly enrollmentJwt: string
  readonly enrollmentExpiresAt?: string | null
}>({ enrollmentJwt: textShape, enrollmentExpiresAt: optionalShape(nullableShape(textShape)) })

/** The certificate of an identity, which must be its only one. */
async function identitySubject(
  client: ApiClient,
  kind: RecordKind,
  row: ApiRecordRow,
): Promise<Subject> {
  const label = `${kindNameInWords(kind.name)} ${rowName(kind, row)}`
  const filter = `identity = ${toFilterLiteral(row.id)} and method = "cert"`
  const { rows } = await readRows(client, kindById('authenticator'), { filter }, 3)
  const [only, ...others] = rows
  if (only === undefined) {
    const token = openEnrollmentId(row)
    if (token !== null) {
      throw new CommandFailure(
        EXIT_FAILED,
        `${label} has no certificate, but has a token; show it with: flotilla get enrollment ${quoteShellWord(token)}`,
      )
    }
    const words = `enrollment method=ott identityId=${quoteShellWord(row.id)} --for 24h`
    throw new CommandFailure(
      EXIT_FAILED,
      `${label} has no certificate; create a token with: flotilla create ${words}`,
    )
  }
  if (others.length > 0) {
    const ids = rows.map(({ id }) => printableLine(id)).join(', ')
    throw new CommandFailure(
      EXIT_FAILED,
      `${label} has several certificates; choose one with flotilla re-enroll authenticator ID: ${ids}`,
    )
  }
  return authenticatorSubject(client, only.id, label)
}

/** @returns the ID of an enrollment with which the identity gets a certificate; null if none. */
function openEnrollmentId(row: ApiRecordRow): string | null {
  const ids = ['ott', 'ottca'].map((method) => readMemberAt(row, ['enrollment', method, 'id']))
  return ids.find((id) => typeof id === 'string') ?? null
}

function authenticatorSubject(client: ApiClient, id: string, label: string): Subject {
  const [kind, enrollments] = [kindById('authenticator'), kindById('enrollment')]
  return {
    label,
    isEnrolled: true,
    reEnroll: async () => {
      const expiresAt = new Date(Date.now() + IDENTITY_TOKEN_MS).toISOString()
      const path = `${recordPath(kind, id, 'detail')}/re-enroll`
      const request = { method: 'POST', path, body: { expiresAt } } as const
      const { data } = await sendRecordWrite(client, kind, `re-enroll ${label}`, request)
      const made = await readToken(`list ${enrollments.plural}`, () =>
        validateResponse(client.controller, createdRecordShape, data),
      )
      const shownBy = `get ${enrollments.name} ${quoteShellWord(made.id)}`
      const shown = { method: 'GET', path: recordPath(enrollments, made.id, 'detail') } as const
      const { data: enrollment } = await readToken(shownBy, () =>
        sendKindRequest(client, enrollments, shown, tokenShape),
      )
      return { ...enrollment, shownBy }
    },
  }
}

const tokenShape = objectShape<Pick<NewToken, 'jwt' | 'expiresAt'>>({
  jwt: textShape,
  expiresAt: nullableShape(textShape),
})

/**
 * Reads the token after the certificate has become invalid.
 * @throws {CommandFailure} exit 1; its message names the command that shows the token.
 */
async function readToken<T>(shownBy: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error
    // Without the cause, whose exit code could suggest that the command can be repeated.
    throw tokenFailure('read', error.message, shownBy)
  }
}

function tokenFailure(
  attempt: 'read' | 'written',
  reason: string,
  shownBy: string,
): CommandFailure {
  return new CommandFailure(
    EXIT_FAILED,
    `the certificate is invalid now, but the token could not be ${attempt}: ${reason}. To show the token: flotilla ${shownBy}`,
  )
}

async function confirm(label: string): Promise<void> {
  if (!isInteractive()) {
    throw new CommandFailure(
      EXIT_USAGE,
      `no terminal to confirm the re-enrollment of ${label}, whose certificate becomes invalid; add --yes`,
    )
  }
  const question = `Re-enroll ${label}? Its certificate becomes invalid immediately. (yes/no) `
  if ((await promptLine(question)) === 'yes') return
  throw new CommandFailure(EXIT_FAILED, 'nothing was changed')
}

/** @throws {CommandFailure} exit 1; its message names the command that shows the token. */
function writeToken(path: string, { jwt, shownBy }: NewToken): void {
  try {
    writeNewFile(path, `${jwt}\n`, 0o600)
  } catch (error) {
    const failure = toOperatorFailure(error)
    if (!(failure instanceof CommandFailure)) throw error
    throw tokenFailure('written', failure.message, shownBy)
  }
}

interface ReEnrolled {
  readonly kind: RecordKind
  readonly row: ApiRecordRow
  readonly label: string
  readonly token: NewToken
}

function report({ kind, row, label, token }: ReEnrolled, { out, json }: ReEnrollOptions): void {
  const { jwt, expiresAt } = token
  if (json === true) {
    const where = out === undefined ? { token: jwt } : { file: out }
    printJson({ kind: kind.name, id: row.id, expiresAt, ...where })
    return
  }
  const end = expiresAt === null ? '' : `; it is valid until ${printableLine(expiresAt)}`
  if (out === undefined) {
    printLine(printableLine(jwt))
    printNote(`flotilla: ${label} must enroll again with this token${end}`)
  } else printLine(`${label} must enroll again with the token in ${out}${end}`)
}
