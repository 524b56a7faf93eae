import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { ValidateFunction } from 'ajv'

export const bases = {
  client: '/edge/client/v1',
  management: '/edge/management/v1',
  fabric: '/fabric/v1',
} as const
export type ApiName = keyof typeof bases
export const apiNames = Object.keys(bases) as readonly ApiName[]

export type Item = Readonly<Record<string, unknown>>
export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: Item
}
export interface DescribedOperation {
  readonly operationId: string
  readonly security: readonly unknown[]
  readonly 'x-admin-socket-only'?: boolean
  readonly parameters: readonly Parameter[]
  readonly requestBody?: {
    readonly required: boolean
    readonly content: Readonly<Record<string, { readonly schema: Item }>>
  }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Item }>> }>
  >
}
/** The document that a controller serves at `/openapi.json`. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Item>> }
}

export interface HeldAnswer {
  readonly status: number
  readonly contentType: string
  readonly text: string
}

/** The API of a URL, and the rest of the path; null for other URLs. */
export function placeOf(url: string): { readonly api: ApiName; readonly path: string } | null {
  const path = (url.split('?')[0] ?? '').replace(/\/$/, '')
  for (const api of apiNames) {
    if (path === bases[api]) return { api, path: '/' }
    if (path.startsWith(`${bases[api]}/`)) return { api, path: path.slice(bases[api].length) }
  }
  return null
}

/**
 * Checks answers against the document that the controller serves: the document must declare the
 * status and the media type, and a JSON body must match its schema. Component schemas of answers
 * allow no field that they do not name. Each check is compiled once.
 */
export class ServedAnswers {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true })
  readonly #checks = new Map<string, ValidateFunction>()
  readonly #templates: ReadonlyMap<string, RegExp>
  readonly document: ApiDocument

  /**
   * One instance for all documents that differ only in addresses, as those of the controllers of a
   * cluster do.
   */
  static of(text: string): ServedAnswers {
    const key = text.replace(/"servers":\[[^\]]*\]/, '')
    let made = known.get(key)
    if (made === undefined) {
      made = new ServedAnswers(JSON.parse(text) as ApiDocument)
      known.set(key, made)
    }
    return made
  }

  private constructor(document: ApiDocument) {
    this.document = document
    addFormats.default(this.#ajv)
    this.#ajv.addSchema(closed(document), DOCUMENT)
    this.#templates = new Map(
      Object.keys(document.paths).map((template) => [
        template,
        new RegExp(`^${template.replace(/\{[A-Za-z]+\}/g, '[^/]+')}$`),
      ]),
    )
  }

  /** The path template in the document; null when the document has none for this path. */
  templateOf(path: string): string | null {
    if (this.document.paths[path] !== undefined) return path
    for (const [template, pattern] of this.#templates) if (pattern.test(path)) return template
    return null
  }

  /**
   * Parts of the answer that the document does not describe; empty for an operation that it does
   * not contain.
   */
  faultsOf(method: string, path: string, answer: HeldAnswer): readonly string[] {
    const template = this.templateOf(path)
    const verb = method.toLowerCase()
    const described = template === null ? undefined : this.document.paths[template]?.[verb]
    if (template === null || described === undefined) return []
    const where = `${verb} ${template} ${answer.status}`
    const response = described.responses[answer.status]
    if (response === undefined) return [`${where} is not declared; it said ${answer.text}`]
    const { content } = response
    if (content === undefined) {
      return answer.text === '' ? [] : [`${where} declares no body; it said ${answer.text}`]
    }
    const type = answer.contentType.split(';')[0] ?? ''
    const declared = content[type]
    if (declared === undefined) return [`${where} does not declare ${type}`]
    if (type !== 'application/json') return []
    const steps = [template, verb, 'responses', `${answer.status}`, 'content', type]
    const check = this.#checkOf(steps, declared.schema)
    if (check(JSON.parse(answer.text))) return []
    const said = answer.text.slice(0, 500)
    return (check.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${where}: ${instancePath} ${message ?? ''} ${JSON.stringify(params)} in ${said}`,
    )
  }

  /**
   * All answers with the same component schema share its check: most of them are refusals, which
   * all have the same schema.
   */
  #checkOf(steps: readonly string[], schema: Item): ValidateFunction {
    const pointer = ['paths', ...steps, 'schema'].map((step) =>
      encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1')),
    )
    const { $ref: named, ...beside } = schema
    const isNamed = typeof named === 'string' && Object.keys(beside).length === 0
    const ref = DOCUMENT + (isNamed ? named : `#/${pointer.join('/')}`)
    let check = this.#checks.get(ref)
    if (check === undefined) {
      check = this.#ajv.compile({ $ref: ref })
      this.#checks.set(ref, check)
    }
    return check
  }
}

const DOCUMENT = 'document'
const known = new Map<string, ServedAnswers>()

/**
 * The document with component schemas of answers, selected by name, that forbid additional members:
 * in these a member that the document does not name is a fault too.
 */
function closed(document: ApiDocument): Record<string, unknown> {
  const { components, ...rest } = document
  const schemas = Object.fromEntries(
    Object.entries(components.schemas).map(([name, schema]) => {
      const isAnswer = /(Detail|Result|Envelope|Session)$/.test(name)
      return [name, isAnswer ? { ...schema, additionalProperties: false } : schema]
    }),
  )
  return { ...rest, components: { schemas } }
}
