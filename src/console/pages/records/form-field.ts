export type Widget =
  | { readonly is: 'end' }
  /** Ends of the role attributes that another field of the form has. */
  | { readonly is: 'roleEnds' }
  | { readonly is: 'text' | 'longText' | 'secret' | 'number' | 'flag' | 'json' | 'texts' }
  | { readonly is: 'choice'; readonly options: readonly string[]; readonly mayBeNone: boolean }
  | { readonly is: 'reference' | 'references'; readonly kind: string }
  | { readonly is: 'roles'; readonly kind: string; readonly isOwn: boolean }
  | { readonly is: 'group'; readonly fields: readonly FormField[] }

export interface FormField {
  readonly name: string
  readonly label: string
  readonly help: string | null
  readonly isRequired: boolean
  readonly isNullable: boolean
  readonly widget: Widget
  /** Value in the form for a new record; undefined: the empty value of the field's type. */
  readonly initial?: unknown
}
