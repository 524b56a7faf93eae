import type { FilterContext, ListFacet } from './list-facets.ts'

/** Quotes a string for the filter language. */
export function quoteFilterText(text: string): string {
  return `"${text.replace(/[\\"]/g, (character) => `\\${character}`)}"`
}

const BY_NAME_OR_ID = (text: string): string =>
  `name icontains ${quoteFilterText(text)} or id = ${quoteFilterText(text)}`

/** `#staff #laptops`: records that have all of these role attributes. */
const ATTRIBUTES = (text: string): string =>
  text
    .split(/\s+(?=#)/)
    .map((role) => `anyOf(roleAttributes) = ${quoteFilterText(role.slice(1))}`)
    .join(' and ')

/**
 * Builds a filter from the typed text, which is a search term, role attributes, or a whole filter
 * after `=`.
 */
export function buildFilter(typed: string, fields: readonly string[]): string {
  const text = typed.trim()
  if (text === '') return ''
  if (text.startsWith('=')) return text.slice(1).trim()
  if (text.startsWith('#')) return ATTRIBUTES(text)
  if (fields.length === 0 || fields.includes('name')) return BY_NAME_OR_ID(text)
  const searched = ['username', 'address', 'method'].filter((name) => fields.includes(name))
  const parts = searched.map((name) => `${name} icontains ${quoteFilterText(text)}`)
  return [...parts, `id = ${quoteFilterText(text)}`].join(' or ')
}

/** Filter, sort order and position of a list, as stored in the page's address. */
export interface ListState {
  readonly typed: string
  readonly sort: string
  readonly isDescending: boolean
  readonly offset: number
  /** Chosen value of each facet, by facet name. */
  readonly facets: Readonly<Record<string, string>>
}

/**
 * Rows per page. The offset of a list is a multiple of this number: the first row of the page that
 * contains the first visible row.
 */
export const PAGE_ROWS = 10

/** Number of the first row to load, which is one page before the first visible row. */
export function firstRowToLoad({ offset }: Pick<ListState, 'offset'>): number {
  return Math.max(0, offset - PAGE_ROWS)
}

/** Value of a facet that the user has widened to all records, although its list starts narrower. */
export const EVERY = 'all'

/** The option of a facet that narrows the list; '' if none does. */
export function chosenOption(
  { facets }: Pick<ListState, 'facets'>,
  { name, usual }: Pick<ListFacet, 'name' | 'usual'>,
): string {
  const value = facets[name] ?? usual?.value ?? ''
  return value === EVERY ? '' : value
}

/** Whether the user has chosen a filter that hides some records of the list. */
export function isFiltered({ typed, facets }: Pick<ListState, 'typed' | 'facets'>): boolean {
  return typed !== '' || Object.values(facets).some((value) => value !== '' && value !== EVERY)
}

const FACET = 'is-'

export function parseListState(query: URLSearchParams): ListState {
  const sort = query.get('sort') ?? ''
  const offset = Number(query.get('offset') ?? '0')
  return {
    typed: query.get('q') ?? '',
    sort: sort.replace(/^-/, ''),
    isDescending: sort.startsWith('-'),
    offset: Number.isSafeInteger(offset) && offset > 0 ? offset - (offset % PAGE_ROWS) : 0,
    facets: Object.fromEntries(
      [...query].flatMap(([name, value]) =>
        name.startsWith(FACET) && value !== '' ? [[name.slice(FACET.length), value]] : [],
      ),
    ),
  }
}

/**
 * Sorts by the usual field of the kind unless the user chose another one.
 * @param kind.sort the field; `-` before it sorts in descending order, as in the page's address.
 */
export function withUsualSort(state: ListState, { sort }: { readonly sort: string }): ListState {
  if (state.sort !== '') return state
  return { ...state, sort: sort.replace(/^-/, ''), isDescending: sort.startsWith('-') }
}

/** The query of the page's address; '' when everything has its default. */
export function formatListState({ typed, sort, isDescending, offset, facets }: ListState): string {
  const query = new URLSearchParams()
  if (typed !== '') query.set('q', typed)
  if (sort !== '') query.set('sort', (isDescending ? '-' : '') + sort)
  for (const [name, value] of Object.entries(facets))
    if (value !== '') query.set(FACET + name, value)
  if (offset > 0) query.set('offset', String(offset))
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/** The field by which a list is sorted; '' means the controller's default order. */
export function listSortField({ sort }: Pick<ListState, 'sort'>, hasNames: boolean): string {
  return sort === '' && hasNames ? 'name' : sort
}

/** The order of rows that have the same value in the field by which the list is sorted. */
const SECOND_SORT: Readonly<Record<string, string>> = {
  service: 'router asc',
  identity: 'method asc',
}

function listFilter(
  state: ListState,
  fields: readonly string[],
  facets: readonly ListFacet[],
  offlineRouterIds: readonly string[],
): string {
  const context: FilterContext = { nowMs: Date.now(), offlineRouterIds }
  const chosen = facets.flatMap((facet) => {
    const wanted = chosenOption(state, facet)
    const option = facet.options.find(({ value }) => value === wanted)
    return option === undefined ? [] : [option.filter(context)]
  })
  const typed = buildFilter(state.typed, fields)
  const parts = [...(typed === '' ? [] : [typed]), ...chosen]
  return parts.length < 2 ? (parts[0] ?? '') : parts.map((part) => `(${part})`).join(' and ')
}

/** The rows to load, among all rows that match the filter. */
export interface RowRange {
  readonly limit: number
  readonly offset: number
}

/** The query of the request for the rows of a list. */
export function listRequestQuery(
  state: ListState,
  fields: readonly string[],
  page: RowRange,
  facets: readonly ListFacet[] = [],
  offlineRouterIds: readonly string[] = [],
): string {
  const [limit, offset] = [String(page.limit), String(page.offset)]
  const query = new URLSearchParams({ limit, offset })
  const filter = listFilter(state, fields, facets, offlineRouterIds)
  if (filter !== '') query.set('filter', filter)
  const sort = listSortField(state, fields.includes('name'))
  if (sort !== '') {
    const order = `${sort} ${state.isDescending ? 'desc' : 'asc'}`
    const next = SECOND_SORT[sort]
    query.set('sort', next === undefined ? order : `${order}, ${next}`)
  }
  return query.toString()
}
