import { nearestWord } from '../../config/engine/nearest-word.ts'
import { CommandFailure, EXIT_FAILED, EXIT_NOT_FOUND } from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { ShapeCheck } from '../client/response-shape.ts'
import type { ApiResponse, ApiClient, ApiRequest } from '../client/api-client.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import type { ReferenceShape } from './fields.ts'
import { type RecordKind, kindById, recordPath, kindNameInWords, withArticle } from './kinds.ts'
import {
  toFilterLiteral,
  readMemberAt,
  type ApiRecordRow,
  rowShape,
  rowsShape,
  setMemberAt,
} from './rows.ts'

const SUGGESTIONS_MAX = 500
const IDS_PER_QUERY = 100

/** Finds records by name or id. */
export class RecordNameResolver {
  readonly #client: ApiClient
  readonly #ids = new Map<string, string>()
  readonly #names = new Map<string, string>()

  constructor(client: ApiClient) {
    this.#client = client
  }

  /** Registers a record that does not exist yet, so that its name can already be used. */
  know(kind: RecordKind, word: string, id: string): void {
    this.#ids.set(`${kind.id} ${word}`, id)
  }

  /** @throws {CommandFailure} exit 4 when no record has the name, 1 when two do. */
  async idOf(kind: RecordKind, word: string): Promise<string> {
    const key = `${kind.id} ${word}`
    const known = this.#ids.get(key)
    if (known !== undefined) return known
    const { id } = await this.record(kind, word)
    this.#ids.set(key, id)
    return id
  }

  /** @throws {CommandFailure} for the same reasons as {@link idOf}. */
  async record(kind: RecordKind, word: string): Promise<ApiRecordRow> {
    if (!kind.hasName) return await this.#byId(kind, word)
    const quoted = toFilterLiteral(word)
    const found = await this.#list(kind, `name = ${quoted} or id = ${quoted}`, 3)
    const [only, ...others] = found
    if (only === undefined) throw await this.#unknown(kind, word)
    if (others.length === 0) return only
    const one = kindNameInWords(kind.name)
    const ids = found.map(({ id }) => id).join(', ')
    const reason = found.some(({ id }) => id === word)
      ? `is the id of one ${one} and the name of another`
      : `is the name of several records`
    throw failure(
      `${JSON.stringify(word)} ${reason}: ${ids}; rename one, or use an id that is not a name`,
    )
  }

  /**
   * Names of the records with these IDs. If a record does not exist or has no name, its ID is used
   * as the name.
   */
  async namesOf(kind: RecordKind, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const unknown = [...new Set(ids)].filter((id) => !this.#names.has(`${kind.id} ${id}`))
    for (let at = 0; at < unknown.length; at += IDS_PER_QUERY) {
      const list = unknown.slice(at, at + IDS_PER_QUERY)
      const rows = await this.#list(
        kind,
        `id in [${list.map(toFilterLiteral).join(',')}]`,
        list.length,
      )
      for (const { id, name } of rows) {
        this.#names.set(`${kind.id} ${id}`, typeof name === 'string' ? name : id)
      }
    }
    return new Map(ids.map((id) => [id, this.#names.get(`${kind.id} ${id}`) ?? id]))
  }

  /**
   * The body with names replaced by ids.
   * @throws {CommandFailure} for the same reasons as {@link idOf}.
   */
  async resolved(kind: RecordKind, body: JsonObject): Promise<JsonObject> {
    const result: Record<string, Json> = { ...body }
    for (const { name, reference } of kind.fields) {
      const value = result[name]
      if (reference === null || value === undefined || value === null) continue
      result[name] = await this.#resolvedValue(reference, value)
    }
    let whole: JsonObject = result
    for (const { path, ...reference } of kind.nested) {
      const value = readMemberAt(whole, path)
      if (value === undefined || value === null || value === '') continue
      whole = setMemberAt(whole, path, await this.#resolvedValue(reference, value))
    }
    return whole
  }

  async #resolvedValue({ to, shape }: ReferenceShape, value: Json): Promise<Json> {
    const kind = kindById(to)
    switch (shape) {
      case 'one':
        return value === '' ? value : await this.idOf(kind, String(value))
      case 'many':
        return await this.#each(value, (word) => this.idOf(kind, word))
      case 'roles':
        return await this.#each(value, async (role) =>
          role.startsWith('@') ? `@${await this.idOf(kind, role.slice(1))}` : role,
        )
      case 'keys': {
        const result: Record<string, Json> = {}
        for (const [word, member] of Object.entries(value as JsonObject)) {
          result[await this.idOf(kind, word)] = member
        }
        return result
      }
    }
  }

  async #each(value: Json, resolve: (word: string) => Promise<string>): Promise<Json> {
    if (!Array.isArray(value)) return value
    const result: string[] = []
    for (const word of value as readonly Json[]) result.push(await resolve(String(word)))
    return result
  }

  async #byId(kind: RecordKind, id: string): Promise<ApiRecordRow> {
    try {
      const path = recordPath(kind, id, 'detail')
      return (await sendKindRequest(this.#client, kind, { method: 'GET', path }, rowShape)).data
    } catch (error) {
      if (!(error instanceof ApiRefusal) || error.status !== 404) throw error
      throw notFound(`no ${kindNameInWords(kind.name)} with the id ${JSON.stringify(id)}`)
    }
  }

  async #unknown(kind: RecordKind, word: string): Promise<CommandFailure> {
    const rows = await this.#list(kind, 'true', SUGGESTIONS_MAX)
    const near = nearestWord(
      word,
      rows.map(({ name }) => String(name)),
    )
    const hint =
      near === null
        ? `flotilla list ${kind.plural} shows them`
        : `did you mean ${printableLine(near)}?`
    return notFound(`no ${kindNameInWords(kind.name)} ${JSON.stringify(word)}; ${hint}`)
  }

  async #list(kind: RecordKind, filter: string, limit: number): Promise<readonly ApiRecordRow[]> {
    const query = new URLSearchParams({ filter, limit: String(limit) })
    const path = `/${kind.plural}?${query.toString()}`
    return (await sendKindRequest(this.#client, kind, { method: 'GET', path }, rowsShape)).data
  }
}

/**
 * Sends a request about a record of a kind. If each controller has its own records of this kind,
 * sends it to one controller after the other until one of them has the record.
 * @throws {CommandFailure}
 */
export async function sendKindRequest<T>(
  client: ApiClient,
  { api, isOfEachController }: RecordKind,
  request: Omit<ApiRequest, 'api'>,
  shape: ShapeCheck<T>,
): Promise<ApiResponse<T>> {
  if (!isOfEachController) return await client.ask({ ...request, api }, shape)
  let refusal: unknown = null
  for (const origin of client.controllers) {
    try {
      return await client.ask({ ...request, api, origin }, shape)
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error
      const isMissing = error instanceof ApiRefusal && error.status === 404
      if (error instanceof ApiRefusal && !isMissing) throw error
      // A failed connection takes precedence over "not found", because the unreachable controller
      // may have the record.
      if (refusal === null || !isMissing) refusal = error
    }
  }
  throw refusal
}

/** The values that a reference accepts, as text for `flotilla explain`. */
export function describeReference({ to, shape }: ReferenceShape): string {
  const kind = kindById(to)
  switch (shape) {
    case 'one':
      return `name or id of ${withArticle(kindNameInWords(kind.name))}`
    case 'many':
      return `names or ids of ${kindNameInWords(kind.plural)}`
    case 'roles':
      return `roles: #attribute, #all, @name or @id of ${withArticle(kindNameInWords(kind.name))}`
    case 'keys':
      return `map by name or id of ${withArticle(kindNameInWords(kind.name))}`
  }
}

function notFound(message: string): CommandFailure {
  return new CommandFailure(EXIT_NOT_FOUND, message)
}

function failure(message: string): CommandFailure {
  return new CommandFailure(EXIT_FAILED, message)
}
