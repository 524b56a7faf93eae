import { useSignal } from '@preact/signals'

import { texts } from '../texts.ts'
import { Button } from './button.tsx'

const CHARACTERS = 20
/** 64 characters, so that each random byte gives one of them with equal chance. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** What an authentication policy may require of a password. */
const required = [/[a-z]/, /[A-Z]/, /\d/, /[-_]/]

/** A random password that meets each rule that an authentication policy can have. */
export function generatePassword(): string {
  for (;;) {
    const bytes = crypto.getRandomValues(new Uint8Array(CHARACTERS))
    const made = [...bytes].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')
    if (required.every((rule) => rule.test(made))) return made
  }
}

/** An input for the new password of another person, which can be generated and shown. */
export function PasswordInput(props: {
  readonly ids: {
    readonly id: string
    readonly 'aria-describedby': string | undefined
    readonly 'aria-invalid': boolean
  }
  readonly isRequired: boolean
  readonly value: string
  readonly onInput: (value: string) => void
}) {
  const { ids, isRequired, value, onInput } = props
  const isShown = useSignal(false)
  const { password } = texts
  return (
    <div class="password">
      <input
        {...ids}
        class={`input ${isShown.value ? 'mono' : ''}`}
        // A cast, because the input's type is a union of string literals that a variable with two
        // of them does not match.
        type={(isShown.value ? 'text' : 'password') as 'text'}
        autocomplete="new-password"
        spellcheck={false}
        required={isRequired}
        value={value}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      <Button isPressed={isShown.value} onClick={() => (isShown.value = !isShown.value)}>
        {password.show}
      </Button>
      <Button
        onClick={() => {
          isShown.value = true
          onInput(generatePassword())
        }}
      >
        {password.generate}
      </Button>
    </div>
  )
}
