import type { ServedSchema } from '../../client/api-document.ts'

export type Widget =
  | { readonly is: 'end' }
  /**
   * The time at which each role attribute ends; another field of the form contains the role
   * attributes.
   */
  | { readonly is: 'roleEnds' }
  | { readonly is: 'text' | 'longText' | 'secret' | 'json' | 'texts' }
  /** `enrollment`: how a new identity enrolls; `controller`: one controller, or all. */
  | { readonly is: 'enrollment' | 'permissions' | 'controller' }
  | { readonly is: 'number'; readonly minimum: number | null; readonly maximum: number | null }
  /** `isOnlyTrue`: the field is either true or absent. */
  | { readonly is: 'flag'; readonly isOnlyTrue: boolean }
  | {
      readonly is: 'choice'
      readonly options: readonly string[]
      /** Displayed names of options whose values are not fit for display, such as IDs. */
      readonly names: Readonly<Record<string, string>>
      readonly mayBeNone: boolean
    }
  /** Several values of a fixed set. */
  | { readonly is: 'choices'; readonly options: readonly string[] }
  | {
      readonly is: 'reference' | 'references'
      readonly kind: string
      /** True: shown as a list of all records, as long as they are few. */
      readonly isSelect?: boolean
    }
  | { readonly is: 'roles'; readonly kind: string; readonly isOwn: boolean }
  /** A value for each of some services; `options`: its choices, [] for a number. */
  | { readonly is: 'byService'; readonly options: readonly string[] }
  | GroupWidget
  /** A list with a separate form for each item. */
  | { readonly is: 'rows'; readonly item: FormField }
  | { readonly is: 'oneOf'; readonly options: readonly ValueVariant[] }
  /** Data whose schema is that of the config type that another field of the form names. */
  | { readonly is: 'configData' }

export interface GroupWidget {
  readonly is: 'group'
  readonly fields: readonly FormField[]
  /** Fields that are required because of the values of others; null: none ever are. */
  readonly requires: ((value: Readonly<Record<string, unknown>>) => readonly string[]) | null
}

/** One of the variants that a value can have. */
export interface ValueVariant {
  readonly field: FormField
  /** Decides whether a value is of this variant. */
  readonly schema: ServedSchema
}

export interface FormField {
  readonly name: string
  readonly label: string
  readonly help: string | null
  readonly isRequired: boolean
  /** True: the user must give a value; a list that may be empty needs none. */
  readonly isStarred: boolean
  readonly isNullable: boolean
  readonly widget: Widget
  /** Value in the form for a new record; undefined: the empty value of the field's type. */
  readonly initial?: unknown
  /** The form shows this field only while another field has one of these values. */
  readonly shownIf?: FieldCondition
  /** True: the value is chosen when the record is created, and never changes. */
  readonly isFixed?: boolean
  /** Example of a value, or the value that is used if the field is empty. */
  readonly placeholder?: string
  /** True: of the optional members of an object, one that few records need. */
  readonly isRare?: boolean
  /** Heading above the first of several fields that belong together. */
  readonly heading?: string
}

export interface FieldCondition {
  readonly field: string
  readonly is: readonly unknown[]
}
