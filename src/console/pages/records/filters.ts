/** Quotes a text for the filter language. */
export function quoteFilterText(text: string): string {
  return `"${text.replace(/[\\"]/g, (character) => `\\${character}`)}"`
}

const BY_NAME_OR_ID = (text: string): string =>
  `name icontains ${quoteFilterText(text)} or id = ${quoteFilterText(text)}`

/** Builds a filter from the typed text: a search text or, after `=`, a complete filter. */
export function buildFilter(typed: string, fields: readonly string[]): string {
  const text = typed.trim()
  if (text === '') return ''
  if (text.startsWith('=')) return text.slice(1).trim()
  if (fields.length === 0 || fields.includes('name')) return BY_NAME_OR_ID(text)
  const searched = ['username', 'address', 'method'].filter((name) => fields.includes(name))
  const parts = searched.map((name) => `${name} icontains ${quoteFilterText(text)}`)
  return [...parts, `id = ${quoteFilterText(text)}`].join(' or ')
}

/** Filter, order and position of a list, as stored in the page's address. */
export interface ListState {
  readonly typed: string
  readonly sort: string
  readonly isDescending: boolean
  readonly offset: number
}

/**
 * The offset of a list is a multiple of this: it begins the page of rows that contains the first
 * visible row.
 */
export const PAGE_ROWS = 30

/** The first row to load. One page before the first visible row is loaded, and two after it. */
export function firstRowToLoad({ offset }: Pick<ListState, 'offset'>): number {
  return Math.max(0, offset - PAGE_ROWS)
}

export function parseListState(query: URLSearchParams): ListState {
  const sort = query.get('sort') ?? ''
  const offset = Number(query.get('offset') ?? '0')
  return {
    typed: query.get('q') ?? '',
    sort: sort.replace(/^-/, ''),
    isDescending: sort.startsWith('-'),
    offset: Number.isSafeInteger(offset) && offset > 0 ? offset - (offset % PAGE_ROWS) : 0,
  }
}

/** The query of the page's address; '' if everything has its default value. */
export function formatListState({ typed, sort, isDescending, offset }: ListState): string {
  const query = new URLSearchParams()
  if (typed !== '') query.set('q', typed)
  if (sort !== '') query.set('sort', (isDescending ? '-' : '') + sort)
  if (offset > 0) query.set('offset', String(offset))
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/** The field by which a list is sorted; '' is the order that the controllers use. */
export function listSortField({ sort }: Pick<ListState, 'sort'>, hasNames: boolean): string {
  return sort === '' && hasNames ? 'name' : sort
}

/** The query of the request for the rows of a list. */
export function listRequestQuery(state: ListState, fields: readonly string[]): string {
  const [limit, offset] = [String(3 * PAGE_ROWS), String(firstRowToLoad(state))]
  const query = new URLSearchParams({ limit, offset })
  const filter = buildFilter(state.typed, fields)
  if (filter !== '') query.set('filter', filter)
  const sort = listSortField(state, fields.includes('name'))
  if (sort !== '') query.set('sort', `${sort} ${state.isDescending ? 'desc' : 'asc'}`)
  return query.toString()
}
