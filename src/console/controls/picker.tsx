import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'

import { CancelledError } from '../../client/client-errors.ts'
import { texts } from '../texts.ts'
import { Icon } from './icon.tsx'
import type { BadgeTone } from './badge-tone.ts'
import { Badge, Skeleton } from './status.tsx'
import type { IconName } from './icon-paths.ts'

/** One suggestion of a picker. */
export interface PickerOption {
  readonly value: string
  readonly text: string
  readonly note?: string
  readonly icon?: IconName
  /** The state of a record, shown after its name. */
  readonly state?: { readonly tone: BadgeTone; readonly word: string; readonly icon?: IconName }
}

/** The first suggestions, and the number of all matches. */
export interface PickerSuggestions {
  readonly options: readonly PickerOption[]
  /** Number of all matches; the suggestions are only the first of them. */
  readonly totalCount: number
}

export interface PickerProps {
  readonly id?: string
  readonly label?: string
  readonly placeholder?: string
  readonly load: (typed: string, signal: AbortSignal) => Promise<PickerSuggestions>
  readonly onPick: (option: PickerOption) => void
  /** True: the picker has the focus and shows its first suggestions immediately. */
  readonly isFocused?: boolean
  readonly 'aria-describedby'?: string | undefined
  readonly 'aria-invalid'?: boolean
  readonly 'aria-required'?: boolean
}

const PAUSE_MS = 150

/**
 * Loads suggestions while the user types.
 * @param onWanted called with the first suggestion if the user pressed Enter before it arrived.
 */
function useSuggestions(
  { load, isFocused = false }: PickerProps,
  onWanted: (first: PickerOption | undefined) => void,
) {
  const typed = useSignal('')
  const found = useSignal<PickerSuggestions | null>(null)
  const fault = useSignal(false)
  const isOpen = useSignal(isFocused)
  const at = useSignal(0)
  /** Typed text to which the suggestions belong; null before the first ones. */
  const foundFor = useSignal<string | null>(null)
  const isPickWanted = useRef(false)
  useEffect(() => {
    if (!isOpen.value) return undefined
    const cancel = new AbortController()
    const timer = setTimeout(() => {
      load(typed.value, cancel.signal).then(
        (options) => {
          found.value = options
          fault.value = false
          at.value = 0
          foundFor.value = typed.value
          if (isPickWanted.current) onWanted(options.options[0])
        },
        (error: unknown) => {
          if (!(error instanceof CancelledError)) fault.value = true
        },
      )
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      cancel.abort()
    }
  }, [typed.value, isOpen.value])
  return { typed, found, fault, isOpen, at, foundFor, isPickWanted }
}

/** A text field that shows the first matches from the server, and the number of all matches. */
export function Picker(props: PickerProps) {
  const { onPick, placeholder, label } = props
  const suggestions = useSuggestions(props, (option) => pick(option))
  const { typed, found, fault, isOpen, isPickWanted } = suggestions
  const listId = useId()
  const root = useRef<HTMLDivElement>(null)
  // Until the server has answered, the earlier suggestions that contain the typed text are shown,
  // and none of them is selected: Enter waits for the answer.
  const isAnswered = suggestions.foundFor.value === typed.value
  const options = (found.value?.options ?? []).filter(
    ({ text }) => isAnswered || text.toLowerCase().includes(typed.value.trim().toLowerCase()),
  )
  const at = isAnswered ? suggestions.at.value : -1
  const pick = (option: PickerOption | undefined): void => {
    if (option === undefined) return
    isPickWanted.current = false
    onPick(option)
    typed.value = ''
    isOpen.value = false
  }
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      isOpen.value = true
      const step = event.key === 'ArrowDown' ? 1 : -1
      if (isAnswered && options.length > 0) {
        suggestions.at.value = (at + step + options.length) % options.length
      }
    } else if (event.key === 'Enter' && isOpen.value) {
      event.preventDefault()
      // If the suggestions for the typed text have not arrived yet, the first one is picked when it
      // arrives.
      if (isAnswered) pick(options[at])
      else isPickWanted.current = true
    } else if (event.key === 'Escape' && isOpen.value) {
      event.stopPropagation()
      isOpen.value = false
    }
  }
  return (
    <div
      class="picker"
      ref={root}
      onFocusOut={(event) => {
        const next = event.relatedTarget
        if (!(next instanceof Node) || root.current?.contains(next) !== true) isOpen.value = false
      }}
    >
      <input
        id={props.id}
        class="input"
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        aria-label={label}
        aria-autocomplete="list"
        aria-expanded={isOpen.value}
        aria-controls={listId}
        aria-activedescendant={
          isOpen.value && at >= 0 && options.length > 0 ? `${listId}-${at}` : undefined
        }
        aria-describedby={props['aria-describedby']}
        aria-invalid={props['aria-invalid']}
        aria-required={props['aria-required']}
        placeholder={placeholder}
        autofocus={props.isFocused}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          isPickWanted.current = false
          isOpen.value = true
        }}
        onClick={() => (isOpen.value = true)}
        onKeyDown={onKey}
      />
      <Suggestions
        listId={listId}
        isOpen={isOpen.value}
        options={options}
        at={at}
        note={
          fault.value
            ? texts.picker.failed
            : found.value !== null && !isAnswered
              ? texts.picker.searching
              : noteOf(found.value)
        }
        onPick={pick}
      />
    </div>
  )
}

function Suggestions(props: {
  readonly listId: string
  readonly isOpen: boolean
  readonly options: readonly PickerOption[]
  readonly at: number
  readonly note: string
  readonly onPick: (option: PickerOption) => void
}) {
  const { listId, isOpen, options, at, note, onPick } = props
  return (
    <div class="picker-list" hidden={!isOpen}>
      <ul role="listbox" id={listId} aria-label={texts.picker.suggestions}>
        {options.map((option, index) => (
          <li
            key={option.value}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === at}
            onPointerDown={(event) => {
              event.preventDefault()
              onPick(option)
            }}
          >
            <span class="option-text">
              {option.icon === undefined ? null : <Icon name={option.icon} />}
              {option.text}
            </span>
            {option.state === undefined ? null : (
              <Badge {...option.state}>{option.state.word}</Badge>
            )}
            {option.note === undefined ? null : <span class="faint tiny">{option.note}</span>}
          </li>
        ))}
      </ul>
      <p class="picker-note" role="status">
        {note}
      </p>
    </div>
  )
}

function noteOf(found: PickerSuggestions | null): string {
  if (found === null) return texts.loading
  if (found.options.length === 0) return texts.picker.none
  return texts.picker.count(found.options.length, found.totalCount)
}

/** Picked values, each with a button to remove it. */
export function Chips(props: {
  /** The text is null while it is loaded. */
  readonly values: readonly { readonly value: string; readonly text: string | null }[]
  readonly onRemove: (value: string) => void
}) {
  if (props.values.length === 0) return null
  return (
    <ul class="chips">
      {props.values.map(({ value, text }) => (
        <li class="chip" key={value}>
          <span>{text ?? <Skeleton width="5rem" />}</span>
          <button
            type="button"
            aria-label={texts.picker.remove(text ?? value)}
            onClick={() => props.onRemove(value)}
          >
            ×
          </button>
        </li>
      ))}
    </ul>
  )
}
